/* identity.h: a digest that tells what a recording's file holds. Of a large file it is cheap: where
 * a tensor carries a digest, its numbers are not read.
 */
#pragma once

#include "libref/base/digest.h"

/* Digests all bytes of the file. From 16 MB on, the numbers of contiguous tensors with a digest are
 * left out, if it is a recording: their digests are among the other bytes. */
vn_status vn_recording_identity(const char *path, vn_digest *d, vn_error *err);
