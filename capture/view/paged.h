/* paged.h: shows a paged KV cache as the keys and values of its tokens.
 *
 * A paged tensor has axes `block` and `slot`: blocks of a fixed number of slots, other axes in any
 * order. Its step has a block table, an int32 tensor `block_table` or `layer3.block_table` with the
 * block numbers in the order of the tokens (specs/names.md, Caches). The derived tensor has one
 * axis `key` instead, with one key for each cached and new token. Unused slots of the last block
 * are ignored.
 */
#pragma once

#include "capture/recording/recording.h"

/* If *r has such tensors, replaces it by a derived recording. The caller closes *r, also after a
 * failure. *gathered: how many there were. Errors: no table, blocks that do not exist, too few of
 * them. */
vn_status vn_paged_gather(vn_recording **r, int *gathered, vn_error *err);
