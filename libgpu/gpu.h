/* gpu.h: the engine under test: a walk over a plan on Vulkan.
 *
 * Same calls as libref's engine (libref/exec/ref.h), same plan, same taps, no
 * shared arithmetic. A forward pass is encoded into one command buffer and
 * nothing executes before submit; taps are copies behind a barrier into a
 * staging buffer that is read after the fence. When they outgrow the staging
 * budget the pass is submitted in several pieces.
 *
 * Owner    plan and weights are borrowed; weights only during create.
 * Threads  one thread at a time per engine.
 * Memory   on the device: weights in the storage format; the arena of live
 *          values of one call; the states, of which those that grow double from
 *          256 tokens up to the context (paged: in whole blocks, found through one
 *          table of 4 bytes a block) and those of fixed size are held twice; a
 *          scratch buffer of at most the staging budget, through which logits,
 *          tapped scores and paged states pass in pieces; partial sums of products whose
 *          inputs were shared out; ids and rope tables.
 *          For the host: twice the staging budget. vn_gpu_facts tells the bytes
 *          of each: bytes_weights, bytes_arena (with scratch, sums and tables),
 *          bytes_cache, bytes_staging.
 */
#ifndef VN_LIBGPU_GPU_H
#define VN_LIBGPU_GPU_H

#include "libref/base/facts.h"
#include "libref/plan/policy.h"
#include "libref/plan/tap.h"

/* What `vernier devices` shows of one Vulkan device. */
typedef struct vn_gpu_device {
	int     index;        /* what --device takes */
	char    name[256];
	char    type[32];     /* "discrete", "integrated", "virtual", "cpu", "other" */
	char    driver[512];
	char    api[32];      /* "1.3.230" */
	int64_t memory;       /* bytes of the largest device-local heap */
	char    missing[512]; /* what we need and it lacks, comma-separated; empty: suitable */
} vn_gpu_device;

/* All devices of the machine. *list is the caller's to free(). None: VN_OK and
 * *n == 0; no Vulkan at all: VN_ERR_DEVICE. */
vn_status vn_gpu_devices(vn_gpu_device **list, int *n, vn_error *err);

typedef struct vn_gpu vn_gpu;

typedef struct vn_gpu_options {
	vn_policy   policy;      /* f16, f16-acc16, f32; f64 is refused */
	int         device;      /* -1: what VERNIER_DEVICE says (an index or part of a name), else the best
	                          * suitable one (discrete, integrated, virtual, cpu) */
	int64_t     staging;     /* bytes of one staging buffer; 0: 64 MiB */
	bool        validate;    /* Khronos validation with synchronisation validation; a message fails the call */
	bool        guard;       /* poison every buffer, guard zones around each, checked after the fence;
	                          * values then share no memory, and all of them are read back */
	/* The cache of keys and values (any state that grows): in one piece, or in pools of
	 * blocks (blocks, kv_heads, block, head_dim) found through a table. The same bits. */
	bool        paged;
	int         block;       /* tokens of a block; 0: 16 */
	uint64_t    scatter;     /* for tests: not 0, blocks are taken in an order drawn from it */
	bool        progress;
	/* Asked before every node and, while the device works, ten times a second;
	 * true ends the call (create too) with VN_ERR_INTERRUPTED once the device is idle. NULL: never. */
	bool      (*stop)(void *ctx);
	void       *stop_ctx;
	const char *cache_dir;   /* for the pipeline cache; NULL: $XDG_CACHE_HOME/vernier or ~/.cache/vernier */
} vn_gpu_options;

vn_status vn_gpu_create(const vn_plan *plan, const vn_tensor *weights, const vn_gpu_options *o,
                        vn_gpu **gpu, vn_error *err);
void      vn_gpu_destroy(vn_gpu *g);

/* As vn_ref_forward. With validate or guard a complaint is VN_ERR_DEVICE: "layer3.q_rope
 * was never written (row 5)", "... was overrun: ...". */
vn_status vn_gpu_forward(vn_gpu *g, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err);

/* The same in parts, for a pass of which some nodes are computed elsewhere.
 * begin, then run, read and write in any number, then end; forward is begin,
 * run of all nodes, end with keep. A failure of any of them ends the call and
 * leaves the position; so do destroy, reset and another begin.
 *
 * begin  fixes tokens and taps. taps->want must live until end.
 * run    records nodes [from, to), behind those run or written so far; those
 *        left out before `from` are passed over. Nothing need execute before a
 *        read or end. Refused: a node whose input was neither run nor written,
 *        or whose state lacks an earlier call that passed the node over. (The
 *        rows that join a state do so even when their reader is passed over.)
 * read   submits, waits, hands over the taps so far, and gives a value (tokens,
 *        row) in the storage dtype. Refused: one that no node to come reads.
 *        A value that shows a state (vn_policy_dtype has its format): as the
 *        state is now. Refused: one that grows, before this call's rows joined.
 * write  puts numbers (tokens,row) in the storage dtype in place of a value when
 *        all nodes before its producer are run or passed over and some node to
 *        come reads it; the producer is passed over. data is free again when it
 *        returns. Taps see what was run here, not what was written. A state of
 *        fixed size is written like a value that its node makes; one that grows
 *        is not.
 * flush  submits, waits and hands over the taps so far: before somebody else writes
 *        into the same sink.
 * end    passes over the rest, submits, waits, hands over the taps. keep: the
 *        position advances. Without it, and without a call, end does nothing. */
vn_status vn_gpu_begin(vn_gpu *g, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err);
vn_status vn_gpu_run(vn_gpu *g, int from, int to, vn_error *err);
vn_status vn_gpu_read(vn_gpu *g, int value, void *data, vn_error *err);
vn_status vn_gpu_write(vn_gpu *g, int value, const void *data, vn_error *err);
vn_status vn_gpu_flush(vn_gpu *g, vn_error *err);
vn_status vn_gpu_end(vn_gpu *g, bool keep, vn_error *err);

int64_t   vn_gpu_position(const vn_gpu *g);
void      vn_gpu_reset(vn_gpu *g);
vn_status vn_gpu_rewind(vn_gpu *g, int64_t position, vn_error *err); /* as vn_ref_rewind */
void      vn_gpu_facts(const vn_gpu *g, vn_facts *f);

/* From the next call on, each node is timed; at first none is, for it takes time itself (1 us a node on an H200). */
void vn_gpu_time_nodes(vn_gpu *g, bool on);

/* Milliseconds on the device of each node in the last call, by timestamps:
 * (n_nodes of the plan), engine's, valid until the next call; NULL when nodes were not timed, the
 * device cannot tell or the last call failed. Nodes that do not wait for one
 * another may overlap: then the later one is charged with what is left of it.
 * A node's taps count as its own. *total: first timestamp to last, of nodes that were not timed too; 0 where there is none. */
const double *vn_gpu_node_ms(const vn_gpu *g, double *total);

#endif
