/* selftest_internal.h: shared by the selftest_*.c files, and included nowhere else: the harness,
 * and the changes and table entries that several tables of mutations have. */
#ifndef VN_COMPARE_SELFTEST_INTERNAL_H
#define VN_COMPARE_SELFTEST_INTERNAL_H

#include "compare/selftest/selftest.h"

enum { VN_HARNESS_PATH = 4096 };

struct vn_mutation_harness {
	const vn_selftest_pair *h;
	vn_recording           *ref, *cand, *floor;
	/* of the candidate's entries: a second name that exists on one side only */
	bool                   *shared;
	char                    ref_copy[VN_HARNESS_PATH], cand_copy[VN_HARNESS_PATH];
	vn_compare_options      o;
};

/* Returns how many numbers one index of the first axis has. */
int64_t vn_selftest_columns(const vn_entry *e);

/* Finds the single-token steps that have e's checkpoint in e's form. *step: their numbers, freed by
 * the caller; NULL: no memory. Returns how many. */
int vn_one_token_steps(const vn_recording *r, const vn_entry *e, int **step);

/* Fills `shared`. A tensor that one side stores once under two names, and the other side twice,
 * cannot be changed alone. */
vn_status vn_mutation_harness_second_names(vn_mutation_harness *c, vn_error *err);

/* Copies the recording `from` to `to` and changes the copy. of: which sides are changed; original:
 * `from`, opened; target, other: as vn_mutation_harness_why_not chose them. */
vn_status vn_mutate(const vn_mutation *m, vn_mutation_sides of, vn_recording *original, const char *from,
                    const char *to, const vn_entry *target, const vn_entry *other, vn_error *err);

/* Chooses the tensors that the mutation is made with, among the candidate's entries; NULL if it
 * needs none. Returns NULL, or why it cannot be tried. */
const char *vn_mutation_harness_why_not(vn_mutation_harness *c, const vn_mutation *m, const vn_entry **target,
                                        const vn_entry **other);

/* ---- tables of mutations ------------------------------------------------------------------------
 * x is (T,W), the numbers of p's target; raw is the same as stored. */

static inline double *row_of(const vn_mutation_context *p, double *x, int64_t t)
{
	return x + t * p->W;
}

/* selftest_numbers.c */
void vn_mutation_nan(const vn_mutation_context *p, double *x); /* one number */
void vn_mutation_zeroed(const vn_mutation_context *p, double *x);
void vn_mutation_negated(const vn_mutation_context *p, double *x);
void vn_mutation_enlarged(const vn_mutation_context *p, double *x); /* times 1.3 */
/* of the largest number */
void vn_mutation_sign_bit(const vn_mutation_context *p, unsigned char *raw);
void vn_mutation_exponent_bit(const vn_mutation_context *p, unsigned char *raw);

/* selftest_places.c */
void vn_mutation_heads_swapped(const vn_mutation_context *p, double *x);
void vn_mutation_to_others(const vn_mutation_context *p, double *x); /* the numbers of p's other */

#define BY(m) \
	{ \
		.status = VN_OUTSIDE, .metric = m \
	}
#define ANY     BY(VN_N_METRICS)
#define NOTHING BY(VN_M_NMSE) /* vacuous: the check of the nmse fails, whatever its value */
#define AS(l) \
	{ \
		.status = VN_OUTSIDE, .metric = VN_M_NMSE, .like = l \
	}

/* The comparison must be refused, unless this word allows it; text: the refusal in words. */
#define REFUSED(word, text) \
	{ \
		.status = VN_N_CHECKPOINT_STATUSES, .allow = word, .says = text \
	}
/* The comparison must end with this status (exit status 2). */
#define FAILS(st, text) \
	{ \
		.status = VN_N_CHECKPOINT_STATUSES, .refused = st, .says = text \
	}

/* Mutations of the reference. A wrong reference is far from its floor, too, which must not excuse
 * the candidate. */
#define REFERENCE(what, said, need, f) \
	{ what "-in-reference", \
	  said ", of the reference, with a floor", \
	  need, \
	  VN_SIDE_REF, \
	  .unit = VN_UNIT_FLOOR, \
	  .numbers = f, \
	  .want = { .status = VN_OUTSIDE, .metric = VN_M_NMSE, .invalid_floor = true } }, \
	{ \
		what "-in-reference-of-a-model", said ", of the reference, with its model", need, VN_SIDE_REF, \
			.unit = VN_UNIT_MODEL, .numbers = f, .want = { \
				.status = VN_OUTSIDE, \
				.metric = VN_M_NMSE, \
				.invalid_floor = true \
			} \
	}

#endif
