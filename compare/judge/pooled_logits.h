/* pooled_logits.h: judges the logits of single-token steps together (vn_pooled_logits).
 *
 * Reads   opened.ref, the checkpoints, and the measured metrics of logits
 * Fills   pools.pooled_logits, n_pooled_logits; pooled_logits of each checkpoint, and rows of
 *         those with scores
 */
#ifndef VN_COMPARE_POOLED_LOGITS_H
#define VN_COMPARE_POOLED_LOGITS_H

#include "compare/comparison/comparison.h"

void vn_pool_logits(const vn_opened *o, vn_checkpoints *all, vn_pools *pools);

#endif
