/* pass.h: one call: begins it, runs it node by node, and ends it. Inside libgpu only.
 *
 * gpu: a vn_gpu, as vn_engine_ops has it (libref/plan/engine.h).
 */
#pragma once

#include "libgpu/engine.h"

vn_status vn_pass_begin(void *gpu, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err);
vn_status vn_pass_run(void *gpu, int from, int to, vn_error *err);
vn_status vn_pass_end(void *gpu, bool keep, vn_error *err);

void      vn_pass_give_up(vn_gpu *g);              /* g may have no open pass */
vn_status vn_pass_failed(vn_gpu *g, vn_status st); /* gives up; returns st */
vn_status vn_pass_is_open(const vn_gpu *g, vn_error *err);
/* Skips the nodes before `to`. If the rows that these nodes append to a growing state exist, they
 * are still appended, because a later call may run the attention. */
void      vn_pass_over(vn_gpu *g, int to);
