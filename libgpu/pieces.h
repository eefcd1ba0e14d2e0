/* pieces.h: values that are never held whole.
 *
 * Inside libgpu only. Logits, and scores, probabilities and activations made
 * for a tap, pass through the scratch buffer piece by piece in row-major order:
 * whole rows while they fit, else parts of one row. Logits are computed whether
 * or not somebody taps them; the others only when somebody does, and only the
 * rows that are wanted.
 */
#ifndef VN_LIBGPU_PIECES_H
#define VN_LIBGPU_PIECES_H

#include "libgpu/engine.h"

/* Bytes of scratch for a call. */
VkDeviceSize vn_pieces_scratch(const vn_gpu_pass *w);
/* Compute and tap the outputs of a node that come in pieces. */
vn_status    vn_pieces_encode(vn_gpu_pass *w, int value, vn_error *err);
/* A value that shows a state which lies in `now`: to the sink, or to memory, or
 * with neither only to be looked through. A paged one is gathered in pieces. */
vn_status    vn_pieces_state(vn_gpu_pass *w, int value, vn_buffer *now, bool hand, void *to, vn_error *err);

#endif
