/* halves.h: converts bfloat16 weights to float16 in place on the device. Inside libgpu only.
 *
 * The bits are those of vn_f32_to_f16. The host only copies such weights, which is faster than
 * converting them there; the device reads and writes each number once.
 */
#pragma once

#include "libgpu/encode.h"
#include "libgpu/weights.h"

/* Converts the weights whose bf16 (w->n) is true; they must have been uploaded. Counts how many
 * finite numbers become infinite. Waits for the device. VN_ERR_INTERRUPTED: the engine's owner
 * wants to stop. */
vn_status vn_halves_make(vn_encoder *e, vn_gpu_weights *w, const bool *bf16, vn_error *err);
