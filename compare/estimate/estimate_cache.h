/* estimate_cache.h: estimates which keys and values an attention read instead of the right ones. */
#ifndef VN_COMPARE_ESTIMATE_CACHE_H
#define VN_COMPARE_ESTIMATE_CACHE_H

#include "compare/trial/case.h"

/* Fits, for the checkpoint's own attention: cache slots that hold other tokens, at offsets that the
 * catalogue does not list; and keys of padding. */
void vn_estimate_keys(vn_case *t);
/* Tries, for any checkpoint of an attention in a later call: new tokens that are cached one slot
 * early or late (vn_applied_slots). */
void vn_estimate_new_slots(vn_case *t);

#endif
