/* estimate_attention.h: which keys an attention saw, and which keys and values it read in the place of its tokens'. */
#ifndef VN_COMPARE_ESTIMATE_ATTENTION_H
#define VN_COMPARE_ESTIMATE_ATTENTION_H

#include "compare/explain/trial.h"

/* A sliding window, and one beside which the first keys stay in sight. at->node is an attention; at's reach says which others have the same. */
vn_status vn_estimate_window(vn_explain_trial *t, const vn_hypothesis *at, vn_error *err);
/* Of the checkpoint's own attention: slots of a cache that hold other tokens, by other numbers than the catalogue's, and keys of padding. */
vn_status vn_estimate_keys(vn_explain_trial *t, vn_error *err);

#endif
