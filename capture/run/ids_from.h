/* ids_from.h: the token ids of a recording, for a run of the same tokens. */
#ifndef VN_CAPTURE_IDS_FROM_H
#define VN_CAPTURE_IDS_FROM_H

#include "libref/base/error.h"

#include <stdint.h>

typedef enum vn_ids_part { VN_IDS_PROMPT, VN_IDS_DECODED, VN_IDS_ALL } vn_ids_part;

/* The decoded tokens are those of the last steps of one token each, behind step 0. What a recording does not have (no ids, no
 * decoded tokens, or several prompts) is refused; `option` is named. *ids is the caller's to free. */
vn_status vn_ids_from(const char *option, const char *path, vn_ids_part part, int32_t **ids, int64_t *n, vn_error *err);

#endif
