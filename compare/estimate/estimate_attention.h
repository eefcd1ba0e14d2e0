/* estimate_attention.h: estimates which keys an attention saw, and mistakes of attention that none
 * of its constants can express (attend.h): several calls recorded as one, a sink, a cap,
 * intermediate rounding. */
#ifndef VN_COMPARE_ESTIMATE_ATTENTION_H
#define VN_COMPARE_ESTIMATE_ATTENTION_H

#include "compare/trial/case.h"

/* Fits a sliding window, also one that keeps the first keys visible. at->node is an attention; at's
 * constants.places says which others have the same window. */
/* Fits blocks of tokens that see each other (A3.blocks). */
void vn_estimate_blocks(vn_case *t, const vn_trial *at);
void vn_estimate_window(vn_case *t, const vn_trial *at);
/* Tries the simplest ways in which a query sees fewer keys: the one with the largest score; the
 * first; its own; those of the first call. On a few queries a fitted scale or window explains them
 * too, so those are fitted only if these fail. */
void vn_estimate_seen_keys(vn_case *t);
/* Tries the mistakes that no constant expresses. */
void vn_estimate_attend(vn_case *t);

#endif
