/* cache_slots.h: finds cache slots of earlier tokens that are empty (zero), hold other tokens' keys
 * and values, or are not seen.
 *
 * One step seldom shows which slots, because a query attends to few tokens. So all steps of the
 * point are used together. */
#pragma once

#include "compare/trial/case.h"

/* Tries to explain a point of attention in n steps, if at least one has no answer. x: their
 * explanations. */
void vn_explain_cache_slots(vn_case *t, vn_findings **x, int n);

/* cache_changed.c: the same for slots that hold their own token's key or value, but changed:
 * scaled, quantised and read without the scales, empty in some key heads, or twice. Needs steps
 * of one token. */
void vn_explain_changed_slots(vn_case *t, vn_findings **x, int n);

/* cache_rows.c: tries that slots of a recorded cache hold other tokens, zeros, or tokens twice. */
void vn_explain_cache_rows(vn_case *t);

/* cache_one_slot.c: the same for a slot in which only the key, or only the value, is wrong: another
 * token's, or none that any token has. Needs steps of one token. */
void vn_explain_one_slot(vn_case *t, vn_findings **x, int n);
