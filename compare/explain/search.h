/* search.h: the number that leaves least error. Pure numbers: what a number leaves is a function of the caller's.
 *
 * Ranges are of positive numbers and even in their logarithms. Of numbers that leave the same the first is taken.
 */
#ifndef VN_COMPARE_SEARCH_H
#define VN_COMPARE_SEARCH_H

#include "libref/base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* What x leaves; INFINITY where it makes nothing finite. A failure ends the search. */
typedef vn_status (*vn_error_of)(void *of, double x, double *error, vn_error *err);
/* The same where it costs little and cannot fail. */
typedef double (*vn_cheap_error_of)(const void *of, double x);

typedef struct vn_least {
	double x, error; /* INFINITY: nothing was found */
} vn_least;

/* On a grid of `steps` from low to high, then by golden section between the neighbours of the best. Where the best of the grid
 * does not leave less than `enough`, no number in between is the right one, and nothing is found. */
vn_status vn_search_scale(vn_error_of error_of, void *of, double low, double high, int steps, double enough, vn_least *least, vn_error *err);
/* Whole numbers: on a grid that is made finer around the best. */
vn_status vn_search_whole(vn_error_of error_of, void *of, int64_t low, int64_t high, vn_least *least, vn_error *err);
/* On a grid of `steps`, then on `finer` of `fewer` steps, each around the best of the one before. */
vn_least  vn_search_grid(vn_cheap_error_of error_of, const void *of, double low, double high, int steps, int finer, int fewer);

/* x in so many significant digits. */
double vn_in_digits(double x, int digits);
/* May x in so many digits be what a person wrote, where x was measured? False: it is more than 2 % away. */
bool   vn_may_be_meant(double x, int digits, double *meant);

#endif
