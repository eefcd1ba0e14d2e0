/* compile.h: builds the pipelines of a call before the call is recorded. Inside libgpu only.
 *
 * A pipeline may take a second to compile. Built one by one while a call is recorded, pipelines
 * keep one processor busy, and their time counts as the call's. Here, the nodes are encoded twice:
 * the first time only lists the shaders that they use. Threads, one per processor, build those that
 * are missing. Each is then used once, over no workgroup, since some drivers (lavapipe) compile at
 * the first use.
 *
 * A shader that the list lacks is built when it is recorded: the time is counted, but nothing else
 * is built beside it.
 */
#ifndef VN_LIBGPU_COMPILE_H
#define VN_LIBGPU_COMPILE_H

#include "libgpu/engine.h"

/* Builds what nodes [from, to) of the current call need. Does nothing for nodes that were listed in
 * an earlier call with as many tokens. VN_ERR_INTERRUPTED: the engine's owner wants to stop. */
vn_status vn_compile(vn_gpu_pass *w, int from, int to, vn_error *err);

#endif
