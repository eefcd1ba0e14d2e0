/* fit.h: fits one number of a trial, and finds the round number that a person would have
 * written.
 *
 * The fitted trial is then scored like any other, so a bad estimate explains nothing.
 */
#pragma once

#include "compare/trial/search.h"
#include "compare/trial/case.h"

/* Finds the value of the finding's constant with the least residual, in as few digits as give the
 * same result, and tries it. */
void     vn_fit_constant(vn_case *t, vn_trial *h, vn_range within);
/* Finds the integer from low to high, for the last constant of h, with the least residual, and sets
 * it in h. Returns it with its nmse. */
vn_least vn_case_best_whole(vn_case *t, vn_trial *h, int64_t low, int64_t high);

/* The number of h is an integer near `best`: tries it and its neighbours between low and high, and
 * records which of them fit equally well. */
void vn_fit_whole(vn_case *t, vn_trial *h, int64_t best, int64_t low, int64_t high);
typedef struct vn_whole_range {
	int64_t low, high;
} vn_whole_range;
/* Returns the integers around `at`, in that range, that are within the floor. */
vn_whole_range vn_case_as_good(vn_case *t, const vn_trial *h, int64_t at, vn_whole_range in);
/* The number of h is x: rounds it to as few digits as give the same result, and tries it. */
void           vn_fit_digits(vn_case *t, vn_trial *h, double x);
