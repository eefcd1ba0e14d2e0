/* apply_recorded.h: applies trials in which an operation read other recorded data than it
 * should: other tokens in cache slots, another state, the previous step's tensor, other rows of the
 * embedding.
 *
 * Each function fills *made, or leaves it empty if the trial does not apply to the checkpoint.
 */
#ifndef VN_COMPARE_APPLY_RECORDED_H
#define VN_COMPARE_APPLY_RECORDED_H

#include "compare/trial/case.h"

/* Computes the attention of the checkpoint by plan p, with the keys and values (of 1: keys only; 2:
 * values only) of these tokens in its slots; -1: zeros. Fills made->own and made->fine. */
bool vn_run_slots(const vn_case *t, const vn_plan *p, int of, const int64_t *token, vn_made *made);
/* Exchanged blocks of the cache, too. */
void vn_apply_slots(const vn_case *t, const vn_trial *h, vn_made *made);
void vn_apply_state(const vn_case *t, const vn_trial *h, vn_made *made);
void vn_apply_step(const vn_case *t, const vn_trial *h, vn_made *made);
void vn_apply_tokens(const vn_case *t, const vn_trial *h, vn_made *made);

#endif
