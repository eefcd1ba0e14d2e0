/* pooled_small.h: judges what is judged in single-token steps together. First small tensors, in
 * limits that are multiples of the floor (vn_pooled_small).
 *
 * Reads   opened.ref, pools.hidden, the checkpoints, and floors
 * Fills   pools.pooled_small, n_pooled_small; pooled_small of each checkpoint
 */
#pragma once

#include "compare/comparison/comparison.h"

void vn_pool_small(const vn_opened *o, vn_checkpoints *all, vn_pools *pools);

/* Is this metric pooled over the steps of a small tensor? */
bool vn_pooled_small_has(vn_metric m);

/* The pooled steps break a limit of `floors` times the floor. Does the step with this nmse break it
 * by itself? Yes, if the steps with smaller nmse together stay within the limit and adding this one
 * breaks it, or if its ratio is twice the pooled one. (The ratio of a single correct step depends
 * on chance, so the limit cannot be applied to one step.) */
bool vn_pooled_small_breaks_by(const vn_pooled_small *g, double nmse, double floors);

/* Judges the logits of single-token steps together (vn_pooled_logits).
 *
 * Reads   opened.ref, the checkpoints, and the measured metrics of logits
 * Fills   pools.pooled_logits, n_pooled_logits; pooled_logits of each checkpoint, and rows of
 *         those with scores
 */

void vn_pool_logits(const vn_opened *o, vn_checkpoints *all, vn_pools *pools);
