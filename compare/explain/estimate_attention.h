/* estimate_attention.h: estimates which keys an attention saw, and which keys and values it read
 * instead of the right ones. */
#ifndef VN_COMPARE_ESTIMATE_ATTENTION_H
#define VN_COMPARE_ESTIMATE_ATTENTION_H

#include "compare/explain/trial.h"

/* Fits a sliding window, also one that keeps the first keys visible. at->node is an attention; at's
 * reach says which others have the same window. */
vn_status vn_estimate_window(vn_explain_trial *t, const vn_hypothesis *at, vn_error *err);
/* Fits, for the checkpoint's own attention: cache slots that hold other tokens, at offsets that the
 * catalogue does not list; and keys of padding. */
vn_status vn_estimate_keys(vn_explain_trial *t, vn_error *err);
/* Tries, for any checkpoint of an attention in a later call: new tokens that are cached one slot
 * early or late (vn_slot_change). */
vn_status vn_estimate_new_slots(vn_explain_trial *t, vn_error *err);

#endif
