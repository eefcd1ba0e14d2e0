/* gpu.h: the GPU engine, the engine under test: executes a plan with Vulkan.
 *
 * It has the functions of every engine (libref/plan/engine.h), and shares no arithmetic with the
 * reference (libref/exec/ref.h). A forward pass is recorded into one command buffer; a long one
 * into two: the first runs while the second is recorded. Taps are copies, behind a barrier,
 * into a staging buffer that is read after the fence. If they exceed the staging budget, the pass
 * is submitted in several pieces.
 *
 * Owner    plan and weights are borrowed; weights only during create.
 * Threads  one thread at a time per engine.
 * Memory   On the device: weights in the storage format; the arena of live values of one call; the
 *          states: growing ones double from 256 tokens up to the context (paged: in whole blocks,
 *          found through one table of 4 bytes per block), those of fixed size are held twice; a
 *          scratch buffer of at most the staging budget, through which logits, tapped scores and
 *          paged states pass in pieces; partial sums of products with divided inputs; of experts,
 *          one to three rows of a gate's width for each token and slot; ids and rope tables; if
 *          few workgroups share many keys, float sums of attention in up to 64 parts.
 *          For the host: twice the staging budget. `facts` states the bytes of each:
 *          bytes_weights, bytes_arena (with scratch, sums and tables), bytes_cache, bytes_staging.
 */
#pragma once

#include "libref/plan/engine.h"
#include "libref/plan/policy.h"

typedef struct vn_gpu vn_gpu;

/* The names of the policies (libref/plan/policy.h) that this engine has. A macro, so that a program
 * built without the engine can name them. */
#define VN_GPU_POLICIES "f16|f16-acc16|f32"

typedef struct vn_gpu_options {
	vn_policy policy;  /* one of VN_GPU_POLICIES; others are refused */
	int       device;  /* -1: what VERNIER_DEVICE says (an index or part of a name), else the best
	                          * suitable one (discrete, integrated, virtual, cpu) */
	int64_t   staging; /* bytes per staging buffer; 0: 64 MiB */
	/* Khronos validation with synchronisation validation; a message fails the call */
	bool      validate;
	bool      guard; /* poison every buffer, guard zones around each, checked after the fence;
	                          * values then share no memory, and all of them are read back */
	/* The cache of keys and values (all growing states): contiguous, or in pools of blocks (blocks,
	 * kv_heads, block, head_dim) found through a table. The bits of results are the same. */
	bool      paged;
	int       block;   /* tokens per block; 0: 16 */
	uint64_t  scatter; /* for tests: if not 0, blocks are taken in an order drawn from it */
	bool      progress;
	int       threads; /* that convert weights or compile shaders; 0: one per processor */
	/* Asked before every node and, while the device works, ten times a second; true ends the call,
	 * or create, with VN_ERR_INTERRUPTED once the device is idle. NULL: never. */
	bool (*stop)(void *ctx);
	void       *stop_ctx;
	/* of the pipeline cache; NULL: $XDG_CACHE_HOME/vernier or ~/.cache/vernier */
	const char *cache_dir;
	/* For an experiment: the first outputs (n_early) of nodes whose commands do not wait for
	 * earlier ones, because the barriers before them are left out. Borrowed like the plan. A call
	 * without such a barrier is refused: VN_ERR_USAGE. */
	const int  *early;
	int         n_early;
} vn_gpu_options;

/* Creates an engine. weights: (n_weights of the plan), in the plan's shapes. */
vn_status vn_gpu_create(const vn_plan *plan, const vn_tensor *weights, const vn_gpu_options *o, vn_gpu **gpu,
                        vn_error *err);

/* What every engine can do: libref/plan/engine.h. self: a vn_gpu. */
extern const vn_engine_ops vn_gpu_ops;

/* Details of this engine. With validate or guard, a finding is VN_ERR_DEVICE: "layer3.q_rope was
 * never written (row 5)", "... was overrun: ...". A failure of any part of a call ends the call.
 * Commands may not run before a read, a flush or end, which submit and wait. read and write refuse
 * a value that no later node reads. */

/* Returns true if no earlier run has left compiled shaders for this device, and this one can. A
 * call then compiles those that it is the first to need, on all processors, before it computes. */
bool vn_gpu_compiles(const vn_gpu *g);

/* Turns timing of single nodes on or off from the next call on. It is off at first, since it takes
 * time (1 us per node on an H200). */
void vn_gpu_time_nodes(vn_gpu *g, bool on);

/* Returns the milliseconds of each node on the device in the last call, by timestamps: (n_nodes of
 * the plan), valid until the next call. NULL if nodes were not timed, the device has no timestamps,
 * or the last call failed. Nodes that do not wait for each other may overlap; then the later one is
 * charged with the rest of its time. Of nodes that one command computes, the first has its time and
 * the others 0. A node's taps are included. *total: first to last timestamp, also if nodes were not
 * timed; 0: not known. */
const double *vn_gpu_node_ms(const vn_gpu *g, double *total);
