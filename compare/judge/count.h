/* count.h: how many different tokens, and how many free numbers, stand behind a measurement.
 *
 * Reads   opened.ref, result.point, result.hidden, result.pool
 * Fills   rows and distinct of a pool
 */
#ifndef VN_COMPARE_COUNT_H
#define VN_COMPARE_COUNT_H

#include "compare/comparison/comparison.h"

/* How many different tokens the rows of a checkpoint stand for, or those of all steps that it is judged with: the same token
 * over and over makes the same row, and the same rounding. rows: how many rows there are. 1 of 1 where no step says. */
int64_t vn_count_distinct(const vn_comparison *c, const vn_checkpoint *p, int64_t *rows);

/* Of all steps of a pool, once: to its rows and distinct. */
void vn_count_pool(const vn_comparison *c, int pool);

/* A share of few rows varies by chance. Returns how many of n rows may disagree if a share of 1 - limit is allowed to: more
 * would disagree in one of a thousand cases, if disagreements are independent (binomial). */
int64_t vn_count_allowed(double limit, int64_t n);

/* The limit that this makes of a share: no higher than the one given. */
double  vn_count_limit(double limit, int64_t n);

/* Numbers of a row of what goes from layer to layer; 0: not recorded. */
int64_t vn_count_hidden(const vn_comparison *c);

/* Whatever is computed from a token's row of so many numbers knows no more than they do: 512 scores made of 32 numbers are as far
 * off as those happened to be. width: of such a row; 0: not known. */
int64_t vn_count_independent(const vn_comparison *c, const vn_checkpoint *p, int64_t width);

/* The metrics `scale` and `norm_ratio` of this checkpoint, on either a candidate or a floor of that nmse, less what luck makes of them.
 * They take the roundings of all numbers for independent and alike. Those of a token that comes again are the same, scores know no more than the
 * row they are made of, and where a few numbers are most of it (sum r^2)^2 / sum r^4 count: there are fewer, and the standard error is that much
 * larger. Six of it are taken off, of a norm half of the nmse too, which adds to it whatever its direction. */
double  vn_count_factor(const vn_comparison *c, const vn_checkpoint *p, vn_metric m, double value, double nmse);

#endif
