/* selftest_change.h: changes and table entries that several tables of mutations share. Included
 * nowhere else.
 *
 * x is (T,W), the numbers of p's target; raw is the same as stored.
 */
#ifndef VN_COMPARE_SELFTEST_CHANGE_H
#define VN_COMPARE_SELFTEST_CHANGE_H

#include "compare/selftest/selftest.h"

static inline double *row(const vn_mutation_context *p, double *x, int64_t t)
{
	return x + t * p->W;
}

/* selftest_numbers.c */
void vn_change_nan(const vn_mutation_context *p, double *x); /* one number */
void vn_change_zeroed(const vn_mutation_context *p, double *x);
void vn_change_negated(const vn_mutation_context *p, double *x);
void vn_change_enlarged(const vn_mutation_context *p, double *x); /* times 1.3 */
/* of the largest number */
void vn_change_sign_bit(const vn_mutation_context *p, unsigned char *raw);
void vn_change_exponent_bit(const vn_mutation_context *p, unsigned char *raw);

/* selftest_places.c */
void vn_change_heads_swapped(const vn_mutation_context *p, double *x);
void vn_change_to_others(const vn_mutation_context *p, double *x); /* the numbers of p's other */

#define BY(m) \
	{ \
		.status = VN_OUTSIDE, .metric = m \
	}
#define ANY     BY(VN_N_METRICS)
#define NOTHING BY(VN_M_NMSE) /* but not for its size */
#define AS(l) \
	{ \
		.status = VN_OUTSIDE, .metric = VN_M_NMSE, .like = l \
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
	  .want = { .status = VN_OUTSIDE, .metric = VN_M_NMSE, .says = "the floor is not a run of this reference" } }, \
	{ \
		what "-in-reference-of-a-model", said ", of the reference, with its model", need, VN_SIDE_REF, \
			.unit = VN_UNIT_MODEL, .numbers = f, .want = { \
				.status = VN_OUTSIDE, \
				.metric = VN_M_NMSE, \
				.says = "the reference differs from what its own model computes" \
			} \
	}

#endif
