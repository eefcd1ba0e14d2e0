/* cache_changed.h: finds slots of a cache that hold their own token's key or value, but changed:
 * scaled, quantised and read without the scales, empty in some key heads, or twice.
 *
 * Needs steps of one token. cache_slots.h finds slots that are empty in all heads, or hold other
 * tokens.
 */
#ifndef VN_COMPARE_CACHE_CHANGED_H
#define VN_COMPARE_CACHE_CHANGED_H

#include "compare/trial/case.h"

/* Tries to explain a point of attention in n steps, if at least one has no answer. x: their
 * explanations. */
void vn_explain_changed_slots(vn_case *t, vn_findings **x, int n);

#endif
