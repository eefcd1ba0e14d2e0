/* pieces.h: computes values that are too large to be in memory as a whole, piece by piece. Inside
 * libgpu only.
 *
 * Logits, and scores, probabilities and activations made for a tap, pass through the scratch buffer
 * piece by piece in row-major order: whole rows if they fit, else parts of one row. Logits are
 * computed whether or not they are tapped; the others only if they are tapped, and only the
 * selected rows.
 */
#pragma once

#include "libgpu/engine.h"

/* Returns the bytes of scratch that a call needs. */
VkDeviceSize vn_pieces_scratch(const vn_gpu_pass *w);
/* For an encoder that is listing: lists the shaders of vn_pieces_encode. */
void         vn_pieces_list(vn_gpu_pass *w, int value);
/* Computes a node's output that comes in pieces, and taps it. */
vn_status    vn_pieces_encode(vn_gpu_pass *w, int value, vn_error *err);
/* Records what happens to a value that shows a state, as part of its whole (vn_transfer_take). now:
 * the buffer with the state. A paged state is gathered in pieces. */
vn_status    vn_pieces_state(vn_gpu_pass *w, vn_transfer_part part, vn_buffer *now, vn_error *err);
