/* count.h: counts the different tokens and the independent numbers behind a measurement.
 *
 * Metrics of few independent numbers vary by chance. The functions here widen limits, or reduce
 * metrics, accordingly.
 *
 * Reads   opened.ref, the checkpoints, pools.hidden, pools.pooled_logits
 * Fills   pools.hidden; rows and distinct of a pool
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Returns the number of different tokens among the rows of a checkpoint and of its pool; *rows: the
 * number of rows. Equal tokens have equal rows, and equal rounding errors. Both are 1 if no step is
 * known. */
int64_t vn_judge_count_distinct(const vn_opened *o, const vn_pools *pools, const vn_checkpoint *p, int64_t *rows);

/* Counts the different ids among n, up to VN_CHANNEL_FEWEST. */
int vn_judge_count_ids(const int32_t *id, int64_t n);

/* Fills rows and distinct of a pool. */
void vn_judge_count_pooled_logits(const vn_opened *o, const vn_checkpoints *all, vn_pools *pools, int pool);

/* Returns how many of n rows may disagree if the limit asks for a share of `limit` to agree: the
 * smallest count that chance exceeds in fewer than one of a thousand cases, if disagreements are
 * independent with probability 1 - limit (binomial). */
int64_t vn_judge_count_allowed(double limit, int64_t n);

/* Returns the share that vn_judge_count_allowed leaves as the limit for n rows; at most `limit`. */
double vn_judge_count_limit(double limit, int64_t n);

/* Sets pools.hidden, the width of the residual stream in numbers per token, if a tensor of the
 * reference shows it. */
void vn_judge_set_hidden(const vn_opened *o, vn_pools *pools);

/* Returns how many numbers of p are independent, if each token's row is computed from `width`
 * numbers (0: not known): 512 logits computed from 32 hidden values are no better than 32. At most
 * the number of elements. */
int64_t vn_judge_count_independent(const vn_opened *o, const vn_checkpoint *p, int64_t width);

/* Returns the effective number of elements of p that carry the sum of squares of the reference,
 * (sum r^2)^2 / sum r^4. The number of elements if there are too many to read again. */
double vn_judge_count_carrying(const vn_opened *o, const vn_checkpoint *p);

/* Is m the metric of a common factor (scale, norm_ratio)? Part of such a factor may be chance
 * (vn_judge_count_factor). */
bool vn_judge_count_has_luck(vn_metric m);

/* Returns the metric `scale` or `norm_ratio` of p (of the candidate or of a floor, with its nmse),
 * less what chance explains: 6 standard errors.
 *
 * The metric's own standard error assumes independent roundings of one size. There are fewer
 * independent ones if a token repeats, if scores are computed from a narrower row, or if a few
 * numbers dominate (vn_judge_count_carrying). For a norm, half of the nmse is subtracted
 * as well, since an error in any direction adds that much to it. */
double vn_judge_count_factor(const vn_opened *o, const vn_pools *pools, const vn_checkpoint *p, vn_metric m,
                             double value, double nmse);
