/* exchange.h: values read from a call and written into it, as vn_engine_ops has it
 * (libref/plan/engine.h). Inside libgpu only. gpu: a vn_gpu.
 */
#pragma once

#include "libref/plan/engine.h"

vn_status vn_pass_read(void *gpu, int value, void *data, vn_error *err);
vn_status vn_pass_write(void *gpu, int value, const void *data, vn_error *err);
vn_status vn_pass_flush(void *gpu, vn_error *err);
