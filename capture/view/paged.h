/* paged.h: a KV cache that lies in blocks, as the tokens it holds.
 *
 * A tensor with axes `block` and `slot` (blocks of so many slots, in any order of the other axes)
 * belongs to a block table of its step: an int32 tensor `block_table`, or `layer3.block_table`, with
 * the numbers of the blocks in the order of the tokens (specs/models.md 7.2). It is seen as the
 * same tensor with an axis `key`, as many as the step has cached and new tokens; what is behind
 * them in the last block is nobody's.
 */
#ifndef VN_CAPTURE_PAGED_H
#define VN_CAPTURE_PAGED_H

#include "capture/recording/recording.h"

/* *r becomes a derived recording where it has such tensors. Also on failure *r is the caller's to
 * close. *gathered: how many there were. Errors: no table, blocks that do not exist, too few of them. */
vn_status vn_paged_gather(vn_recording **r, int *gathered, vn_error *err);

#endif
