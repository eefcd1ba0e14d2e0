/* gpu.h: the engine under test: a walk over a plan on Vulkan.
 *
 * It has the calls of every engine (libref/plan/engine.h), and shares no arithmetic with the
 * reference (libref/exec/ref.h). A forward pass is encoded into one command buffer, a
 * long one into two, of which the first executes while the other is encoded; taps are copies behind a barrier into a
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
 *          inputs were shared out; ids and rope tables; where few workgroups share many
 *          keys, float sums of attention in up to 64 parts.
 *          For the host: twice the staging budget. vn_gpu_facts tells the bytes
 *          of each: bytes_weights, bytes_arena (with scratch, sums and tables),
 *          bytes_cache, bytes_staging.
 */
#ifndef VN_LIBGPU_GPU_H
#define VN_LIBGPU_GPU_H

#include "libref/plan/engine.h"
#include "libref/plan/policy.h"

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

/* The functions of vn_engine_ops (libref/plan/engine.h). gpu: a vn_gpu. */
vn_status vn_gpu_forward(void *gpu, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err);
vn_status vn_gpu_begin(void *gpu, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err);
vn_status vn_gpu_run(void *gpu, int from, int to, vn_error *err);
vn_status vn_gpu_read(void *gpu, int value, void *data, vn_error *err);
vn_status vn_gpu_write(void *gpu, int value, const void *data, vn_error *err);
vn_status vn_gpu_flush(void *gpu, vn_error *err);
vn_status vn_gpu_end(void *gpu, bool keep, vn_error *err);
int64_t   vn_gpu_position(const void *gpu);
void      vn_gpu_reset(void *gpu);
vn_status vn_gpu_rewind(void *gpu, int64_t position, vn_error *err);
void      vn_gpu_facts(const void *gpu, vn_facts *f);
void      vn_gpu_destroy(void *gpu);
extern const vn_engine_ops vn_gpu_ops;

/* More of the GPU alone. With validate or guard a complaint is VN_ERR_DEVICE: "layer3.q_rope was never written (row 5)",
 * "... was overrun: ...". A failure of any part of a call ends the call. Nothing need execute before a read, a flush or
 * end: these submit and wait. read and write refuse a value that no node to come reads. */

/* No earlier run had left compiled shaders for this device: the driver compiles them, when a pipeline is made or first used. */
bool      vn_gpu_compiles(const vn_gpu *g);

/* From the next call on, each node is timed; at first none is, for it takes time itself (1 us a node on an H200). */
void vn_gpu_time_nodes(vn_gpu *g, bool on);

/* Milliseconds on the device of each node in the last call, by timestamps:
 * (n_nodes of the plan), engine's, valid until the next call; NULL when nodes were not timed, the
 * device cannot tell or the last call failed. Nodes that do not wait for one
 * another may overlap: then the later one is charged with what is left of it.
 * A node's taps count as its own. *total: first timestamp to last, of nodes that were not timed too; 0 where there is none. */
const double *vn_gpu_node_ms(const vn_gpu *g, double *total);

#endif
