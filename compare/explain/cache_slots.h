/* cache_slots.h: finds cache slots of earlier tokens that are empty (zero), hold other tokens' keys
 * and values, or are not seen.
 *
 * One step seldom shows which slots, because a query attends to few tokens. So all steps of the
 * point are used together. */
#ifndef VN_COMPARE_CACHE_SLOTS_H
#define VN_COMPARE_CACHE_SLOTS_H

#include "compare/trial/case.h"

/* Tries to explain a point of attention in n steps, if at least one has no answer. x: their
 * explanations. */
void vn_explain_cache_slots(vn_case *t, vn_findings **x, int n);

#endif
