/* selftest_internal.h: shared by selftest.c, selftest_mutate.c and selftest_target.c; included
 * nowhere else. */
#ifndef VN_COMPARE_SELFTEST_INTERNAL_H
#define VN_COMPARE_SELFTEST_INTERNAL_H

#include "compare/selftest/selftest.h"

enum { VN_CLINIC_PATH = 4096 };

struct vn_mutation_harness {
	const vn_healthy  *h;
	vn_recording      *ref, *cand, *floor;
	/* of the candidate's entries: a second name that exists on one side only */
	bool              *shared;
	char               ref_copy[VN_CLINIC_PATH], cand_copy[VN_CLINIC_PATH];
	vn_compare_options o;
};

/* Returns how many numbers one index of the first axis has. */
int64_t vn_columns(const vn_entry *e);

/* Finds the single-token steps that have e's checkpoint in e's form. *step: their numbers, freed by
 * the caller; NULL: no memory. Returns how many. */
int vn_one_token_steps(const vn_recording *r, const vn_entry *e, int **step);

/* Fills `shared`. A tensor that one side stores once under two names, and the other side twice,
 * cannot be changed alone. */
vn_status vn_mutation_harness_second_names(vn_mutation_harness *c, vn_error *err);

/* Copies the recording `from` to `to` and changes the copy. of: which sides are changed; healthy: `from`, opened;
 * target, other: as vn_mutation_harness_why_not chose them. */
vn_status vn_mutate(const vn_mutation *m, vn_mutation_sides of, vn_recording *healthy, const char *from, const char *to,
                    const vn_entry *target, const vn_entry *other, vn_error *err);

/* Chooses the tensors that the mutation is made with, among the candidate's entries; NULL if it
 * needs none. Returns NULL, or why it cannot be tried. */
const char *vn_mutation_harness_why_not(vn_mutation_harness *c, const vn_mutation *m, const vn_entry **target,
                                        const vn_entry **other);

#endif
