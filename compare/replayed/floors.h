/* floors.h: how far numbers are from what they should be, in floors: by a replay file.
 *
 * C are the candidate's numbers; A what the operation gives in a higher precision from the
 * candidate's own inputs; F the same in the candidate's precision. The floor is the larger of
 * |F - A|^2 and of one rounding of A to the format (400 for float32 and float64, whose sums round
 * often). That of a row (the last axis) is at least a quarter of the mean row's: a row near 0 has
 * none of its own. From half of the format's largest number on, a number is infinite (a mask), and
 * infinities must agree; a mask that F, too, has as the least number of float16 agrees with one.
 * All measured: specs/compare.md, Any model.
 */
#pragma once

#include "compare/replay/local.h"

/* All of one shape. */
typedef struct vn_floor_tensors {
	const vn_tensor *cand, *expected;
	const vn_tensor *floor; /* NULL: roundings alone */
	const vn_tensor *ref;   /* the reference's own numbers, for the inherited error; NULL */
	vn_dtype         format;
	double           allow; /* factor on the floor, 1 or more */
} vn_floor_tensors;

/* The part of an error that is a multiple of the result, of the candidate and of F. */
typedef struct vn_floor_slope {
	double own, floor;
	double errors; /* their difference in standard errors */
} vn_floor_slope;

/* Fills the local error, its floors, bad, inherited and independent_numbers of *l, and zeroes the
 * rest. */
void vn_floors_measure(const vn_floor_tensors *x, vn_replayed *l, vn_floor_slope *slope);

/* Returns the factor on the floor of an operation: kernels of convolutions may use other algorithms
 * than a plain sum. */
double vn_floors_allowed(const char *op, vn_dtype format);
