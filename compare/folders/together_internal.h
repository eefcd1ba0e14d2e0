/* together_internal.h: words of the JSON that together.c writes and together_read.c reads. */
#ifndef VN_COMPARE_TOGETHER_INTERNAL_H
#define VN_COMPARE_TOGETHER_INTERNAL_H

#include "compare/folders/together.h"

#define VN_TOGETHER_SCHEMA "vernier-folders/1"

extern const char *const vn_together_verdicts[3]; /* by status */
/* Which folders hold a pair, in words. Indices: does the reference's folder hold it; does the only
 * candidate's. */
extern const char *const vn_together_holders[2][2];

#endif
