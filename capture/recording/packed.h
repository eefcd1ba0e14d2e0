/* packed.h: several prompts one behind the other in one row, as engines with a continuous batch have them.
 *
 * /run/positions says where: in the first step a position that is not the one before plus one begins the next
 * prompt. Every later step has tokens of each of them, in the same order: one each, or runs as in the first.
 */
#ifndef VN_CAPTURE_PACKED_H
#define VN_CAPTURE_PACKED_H

#include "capture/recording/recording.h"

/* How many prompts; 0: one, or rows of a batch (batched.h). */
int64_t   vn_packed_count(const vn_recording *r);
/* of (tokens): which prompt each token is of. Errors: a step that does not go on with all of them. */
vn_status vn_packed_prompts(const vn_recording *r, int64_t *of, vn_error *err);

#endif
