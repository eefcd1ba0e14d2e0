/* together_internal.h: words of the JSON that together.c writes and together_read.c reads. */
#ifndef VN_COMPARE_TOGETHER_INTERNAL_H
#define VN_COMPARE_TOGETHER_INTERNAL_H

#include "compare/folders/together.h"

#define VN_TOGETHER_SCHEMA "vernier-folders/1"

extern const char *const vn_together_verdicts[3]; /* by status */
/* Returns the word for a folder that holds a pair, of several candidates: "reference", "A". */
const char              *vn_together_holder(int side, char letter[2]);

#endif
