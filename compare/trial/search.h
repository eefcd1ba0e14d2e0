/* search.h: finds the number with the least error. The caller supplies the function that computes
 * the error of a number.
 *
 * Ranges are positive and spaced evenly in their logarithms. Of numbers with equal error, the first
 * is returned.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Computes the error of x; INFINITY: x gives no finite result. */
typedef double (*vn_error_of)(void *of, double x);

typedef struct vn_least {
	double x, error; /* both INFINITY: nothing was found */
} vn_least;

/* The range and grid in which a number is searched. vague: a fit (fit.h) searches between grid
 * points only if the best one is already near. */
typedef struct vn_range {
	double low, high;
	int    steps;
	bool   vague;
} vn_range;

/* Searches a grid, then by golden section between the neighbours of the best. If the best grid
 * point has an error of at least `enough`, no number between grid points is the right one, and
 * nothing is found. */
vn_least vn_search_scale(vn_error_of error_of, void *of, vn_range in, double enough);
/* Searches integers on a grid that is refined around the best. */
vn_least vn_search_whole(vn_error_of error_of, void *of, int64_t low, int64_t high);
/* Searches a grid, then `finer` times a grid of `fewer` steps around the previous best. */
vn_least vn_search_grid(vn_error_of error_of, void *of, vn_range in, int finer, int fewer);

/* Returns x rounded to `digits` significant digits. */
double vn_in_digits(double x, int digits);

/* The numbers that a person may have written for a measured x: x in `fewest` to `most` significant
 * digits, the fewest first. */
typedef struct vn_round_numbers {
	double x;
	int    fewest, most; /* fewest 0: 1 */
	bool   inverse;      /* after each, 1 divided by a number of as many digits */
	bool   near;         /* only those within 2 % of x: a person did not write the others */
	int    given;        /* how many were given; at first 0 */
} vn_round_numbers;

/* Sets *number to the next one. Returns false if there are no more. */
bool vn_next_round_number(vn_round_numbers *r, double *number);
