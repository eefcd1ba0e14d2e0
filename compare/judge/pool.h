/* pool.h: the logits of steps of one token each, judged together (vn_pool). */
#ifndef VN_COMPARE_POOL_H
#define VN_COMPARE_POOL_H

#include "compare/comparison/comparison.h"

/* pool, of what is measured. */
vn_status vn_pool_scores(vn_comparison *c, vn_error *err);

#endif
