/* weights_internal.h: how one weight is judged: shared by weights.c, weights_tried.c,
 * weights_likely.c, weights_fused.c, weights_moved.c and weights_lines.c. */
#pragma once

#include "compare/weights/weights.h"
#include "compare/weights/weights_numbers.h"

/* Adds a measurement to *d. Returns true. */
bool vn_weight_measures(vn_weight_difference *d, vn_weight_measure what, double x);

/* Each fills *d and returns true if it finds an explanation. */
bool vn_weight_by_table(const vn_weight_trial *t, vn_weight_difference *d);
bool vn_weight_by_digest(const vn_weight_trial *t, vn_weight_difference *d);
bool vn_weight_by_numbers(const vn_weight_trial *t, vn_weight_difference *d);
bool vn_weight_by_statistics(const vn_weight_trial *t, vn_weight_difference *d);
/* Are q, k and v, or gate and up, the rows of one fused matrix that was transposed as a whole? */
bool vn_weight_transposed_together(const vn_weight_trial *t, vn_weight_difference *d);
/* Are they such rows in an unknown order, judged by statistics? */
bool vn_weight_mixed(const vn_weight_trial *t, vn_weight_difference *d);
/* Are its rows, its columns or all its numbers in another order that vn_weight_orders_of does not
 * list: with RoPE's pairs of another number of heads, heads transposed, blocks that ranks joined,
 * or any other? m: the numbers of side `given`. */
bool vn_weight_moved(const vn_weight_trial *t, int given, const vn_weight_numbers *m, vn_weight_difference *d);
/* For a weight that exists on one side only because the other has it in parts, or as a part of a
 * fused one. *same: the numbers are equal. */
bool vn_weight_fused(const vn_weight_trial *t, vn_weight_difference *d, bool *same);
/* Do both sides have the same numbers up to a conversion of format, even if the digests differ?
 * ALIKE: the formats differ and the statistics agree, but the numbers that would decide are not
 * available. */
typedef enum vn_weight_fate { VN_WEIGHT_SAME, VN_WEIGHT_ROUNDED, VN_WEIGHT_ALIKE, VN_WEIGHT_DIFFERS } vn_weight_fate;
vn_weight_fate vn_weight_same_numbers(const vn_weight_trial *t);

/* Makes the lines from the differences, which it sorts. all: the names of both sides, which tell
 * whether all layers differ. */
void vn_weights_group(vn_weights *w, const vn_weight_name *all, int n_all);
