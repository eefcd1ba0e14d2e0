/* cache_one_slot.h: finds one slot of a cache whose key alone, or value alone, is another token's, or none that
 * is known.
 *
 * Needs steps of one token. As cache_slots.h, of which it is the rest: there, keys and values are wrong together,
 * or are 0.
 */
#ifndef VN_COMPARE_CACHE_ONE_SLOT_H
#define VN_COMPARE_CACHE_ONE_SLOT_H

#include "compare/explain/trial.h"

/* In the list of a VN_CACHE_ONE_ALONE: what the slot holds is no known token's. */
enum { VN_CACHE_UNKNOWN = -1 };

/* Tries to explain a point of attention in n steps, at least one of which has no answer. x: their explanations. */
vn_status vn_explain_one_slot(vn_explain_trial *t, vn_explanation **x, int n, vn_error *err);

#endif
