/* selftest_internal.h: what selftest.c and selftest_target.c share. Nobody else includes it. */
#ifndef VN_COMPARE_SELFTEST_INTERNAL_H
#define VN_COMPARE_SELFTEST_INTERNAL_H

#include "compare/selftest/selftest.h"

enum { VN_CLINIC_PATH = 4096 };

struct vn_mutation_harness {
	const vn_healthy *h;
	vn_recording     *ref, *cand, *floor;
	bool             *shared; /* of the candidate's entries: one tensor with another name on one side alone */
	char              ref_copy[VN_CLINIC_PATH], cand_copy[VN_CLINIC_PATH];
	vn_compare_options o;
};

/* Numbers of one index of the first axis. */
int64_t vn_columns(const vn_entry *e);

/* The steps of one token that have e's checkpoint in e's form. step: their numbers, to be freed; NULL: no memory. Returns how many. */
int vn_one_token_steps(const vn_recording *r, const vn_entry *e, int **step);

/* Fill shared: what one side files once under two names and the other twice is not changed alone. */
vn_status vn_mutation_harness_second_names(vn_mutation_harness *c, vn_error *err);

/* The tensors that the mutation is made with, of the candidate's entries; NULL where it needs none.
 * Returns why it cannot be tried; NULL: it can. */
const char *vn_mutation_harness_why_not(vn_mutation_harness *c, const vn_mutation *m, const vn_entry **target, const vn_entry **other);

#endif
