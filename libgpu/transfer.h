/* transfer.h: brings tapped values from the device to the sink. Inside libgpu only.
 *
 * There are two staging buffers, one for each command buffer of the encoder. A tap is a copy into
 * the open one. When it is full, the commands so far are submitted, and recording continues with
 * the other buffer, after its fence was waited for and its bytes were passed to the sink. Meanwhile
 * the device works on the commands that were submitted.
 *
 * With guard, every value is copied out, tapped or not, and checked for poison before any of it is
 * handed over.
 */
#pragma once

#include "libgpu/engine.h"

/* Records: elements from byte `from` of src are those of part.value from part.start on. Sets
 * part.offset and part.elements. */
vn_status vn_transfer_take(vn_gpu_pass *w, vn_transfer_part part, vn_buffer *src, VkDeviceSize from, int64_t elements,
                           vn_error *err);
/* Records the taps of a value that is whole in src. */
vn_status vn_transfer_tap(vn_gpu_pass *w, int value, vn_buffer *src, vn_error *err);
/* Submits what is recorded and continues recording, if that needs no waiting. */
vn_status vn_transfer_send(vn_gpu_pass *w, vn_error *err);
/* Submits what is recorded, waits, and hands over everything left. */
vn_status vn_transfer_finish(vn_gpu_pass *w, vn_error *err);
/* The same; recording continues. */
vn_status vn_transfer_flush(vn_gpu_pass *w, vn_error *err);
