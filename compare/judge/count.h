/* count.h: of rows that agree or do not, how many say something. */
#ifndef VN_COMPARE_COUNT_H
#define VN_COMPARE_COUNT_H

#include "compare/compare.h"

/* How many different tokens the rows of a checkpoint stand for, or those of all steps that it is judged with: the same token
 * over and over makes the same row, and the same rounding. rows: how many rows there are. 1 of 1 where no step says. */
int64_t vn_count_distinct(const vn_comparison *c, const vn_checkpoint *p, int64_t *rows);

/* Of all steps of a pool, once: to its rows and distinct. */
void vn_count_pool(const vn_comparison *c, int pool);

/* A share of few rows is luck: so many of n rows may disagree where a share of 1 - limit is allowed to, that more would come
 * in one of a thousand cases, disagreements being independent (a binomial). */
int64_t vn_count_allowed(double limit, int64_t n);

/* The limit that this makes of a share: no higher than the one given. */
double  vn_count_limit(double limit, int64_t n);

/* The metric `scale` of this checkpoint, on either a candidate or a floor of that nmse. It knows how many roundings it is taken
 * over and takes them for independent. Those of a token that comes again are the same, so there are fewer, and its standard
 * error is that much larger. */
double  vn_count_scale(const vn_comparison *c, const vn_checkpoint *p, double scale, double nmse);

#endif
