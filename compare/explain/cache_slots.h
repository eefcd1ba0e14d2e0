/* cache_slots.h: slots of a cache that hold nothing, or what other tokens have, or are not seen: the keys and values of some earlier tokens
 * are 0, those of as many others, or in no sum. Which, one step seldom tells, because a query hardly listens to most tokens: all
 * steps of the point are asked together. */
#ifndef VN_COMPARE_CACHE_SLOTS_H
#define VN_COMPARE_CACHE_SLOTS_H

#include "compare/explain/trial.h"

/* x: the explanations of one point of attention in n steps, one of which at least has no answer. */
vn_status vn_explain_cache_slots(vn_explain_trial *t, vn_explanation **x, int n, vn_error *err);

#endif
