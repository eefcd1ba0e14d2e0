/* compare_infer.h: the formats of a candidate whose precision nobody declared: those under which
 * its operations are right. Included only by compare_*.c. */
#pragma once

#include "compare/infer_again.h"

/* Returns the number of the first step in which an operation is wrong, if it is behind those that
 * the search looks at; else -1. */
int  vn_compare_wrong_later(const vn_opened *o, const vn_checkpoints *all);
/* Are, from this step on, nearly all operations of one of the policy's roles wrong? They were
 * judged by it. */
bool vn_compare_policy_ends(const vn_opened *o, const vn_checkpoints *all, vn_policy policy, int from);

/* Adds roles with formats of their own to *policy, by which these were judged, until no more of
 * them explain operations that are wrong everywhere. Compares many times, and changes x->chosen. */
vn_status vn_compare_find_policy(vn_inference *x, const vn_opened *judged, const vn_checkpoints *all, vn_policy *policy,
                                 vn_error *err);
