/* fit.h: one number of a hypothesis: which leaves least, and which a person would have written.
 *
 * What is fitted is then scored like any other hypothesis, so a bad estimate explains nothing.
 */
#ifndef VN_COMPARE_FIT_H
#define VN_COMPARE_FIT_H

#include "compare/explain/trial.h"

/* Where a constant is looked for. vague: only where the best of a grid is near enough for a number in between to be the right one. */
typedef struct vn_range { double low, high; int steps; bool vague; } vn_range;

/* The constant that leaves least, in as few digits as come to the same; tried. */
vn_status vn_fit_constant(vn_explain_trial *t, vn_hypothesis *h, const char *name, vn_range within, vn_error *err);
/* The last constant of h, a whole number from low to high, that leaves least, into h too; *error: as nmse. */
vn_status vn_best_whole(vn_explain_trial *t, vn_hypothesis *h, int64_t low, int64_t high, int64_t *best, double *error, vn_error *err);

/* Its number is whole, `best` or one beside it between low and high: tried, with those beside it that fit as well. */
vn_status vn_fit_whole(vn_explain_trial *t, vn_hypothesis *h, int64_t best, int64_t low, int64_t high, vn_error *err);
/* Its number and those beside it, from low to high, that are within the floor. */
vn_status vn_as_good(vn_explain_trial *t, const vn_hypothesis *h, int64_t at, int64_t low, int64_t high, int64_t *first, int64_t *last, vn_error *err);
/* Its number is x, in as few digits as come to the same; tried. */
vn_status vn_fit_digits(vn_explain_trial *t, vn_hypothesis *h, double x, vn_error *err);

#endif
