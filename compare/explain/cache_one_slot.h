/* cache_one_slot.h: finds a cache slot in which only the key, or only the value, is wrong: another
 * token's, or none that any token has.
 *
 * Needs steps of one token. cache_slots.h finds slots whose key and value are both wrong, or whose
 * key or value is zero.
 */
#ifndef VN_COMPARE_CACHE_ONE_SLOT_H
#define VN_COMPARE_CACHE_ONE_SLOT_H

#include "compare/trial/case.h"

/* Tries to explain a point of attention in n steps, if at least one has no answer. x: their
 * explanations. */
void vn_explain_one_slot(vn_case *t, vn_findings **x, int n);

#endif
