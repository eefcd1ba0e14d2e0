/* halves.h: weights of bfloat16 become halves, on the device and where they are. Inside libgpu
 * only.
 *
 * The bits are those of vn_f32_to_f16. The host only copies such weights, which is faster than to
 * convert them, and the device reads and writes them once.
 */
#ifndef VN_LIBGPU_HALVES_H
#define VN_LIBGPU_HALVES_H

#include "libgpu/weights.h"

/* bf16 (w->n): those weights, which have arrived. over (w->n), zeroes before: their finite numbers
 * that became infinite. Waits for the device. VN_ERR_INTERRUPTED: the engine's owner wants to
 * stop. */
vn_status vn_halves_make(vn_encoder *e, vn_gpu_weights *w, const bool *bf16, int64_t *over, vn_error *err);

#endif
