/* compile.h: builds the pipelines of a call before the call is recorded. Inside libgpu only.
 *
 * A pipeline may take a second to compile. If pipelines were built one by one while a call is
 * recorded, only one processor would work, and the call would seem slow. So nodes are encoded
 * twice: the first time only lists the shaders that they use. Threads, one per processor, build
 * those that are missing. Then each is dispatched once with zero workgroups, since some drivers
 * (lavapipe) compile at the first use.
 *
 * A shader that is not on the list is built when it is recorded, by one thread; its time counts as
 * the call's.
 */
#pragma once

#include "libgpu/engine.h"

/* Builds what nodes [from, to) of the current call need. Does nothing for nodes that were listed in
 * an earlier call with as many tokens. VN_ERR_INTERRUPTED: the engine's owner wants to stop. */
vn_status vn_compile(vn_gpu_pass *w, int from, int to, vn_error *err);
