/* own_calls.h: where the candidate's calls begin, also those that were joined to one step.
 */
#ifndef VN_COMPARE_OWN_CALLS_H
#define VN_COMPARE_OWN_CALLS_H

#include "compare/explain/trial.h"

/* Returns (t->site->tokens) numbers: the position at which the call of each token begins; -1: a first call, or a call
 * of one token. *later: does the checkpoint have a row of another call? NULL: no memory. The caller frees it. */
int64_t *vn_own_calls(const vn_explain_trial *t, bool *later);
/* The position at which the call of token i begins; calls of `call` tokens, or (VN_OWN_CALLS) as in begins. -1: a
 * first call, or one of one token. */
int64_t  vn_call_of(const int64_t *begins, int call, int64_t i);

#endif
