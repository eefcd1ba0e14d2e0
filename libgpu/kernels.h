/* kernels.h: the shaders as pipelines, and the C struct of each push block. Inside libgpu only.
 *
 * A shader has a name, code for each precision policy, and a push block. Shaders that need no more
 * are rows of kernels.def; the others are rows of the table in kernels.c. A faster form for some
 * device is a row of its own. So is the form of an operation for experiments (vn_experiment), which
 * is compiled from the same source: its row follows that of the usual shader, and an engine whose
 * plan has no experiment does not load it.
 *
 * Only pipelines that are needed are built (compile.h): some drivers take seconds for all of them,
 * and a run needs only a few.
 *
 * Threads  one at a time, but vn_kernel_build of different shaders may run at the same time.
 */
#ifndef VN_LIBGPU_KERNELS_H
#define VN_LIBGPU_KERNELS_H

#include "libgpu/device.h"

#include "libref/plan/plan.h"
#include "libref/plan/policy.h"

typedef enum vn_kernel {
#define SHADER(NAME, name, push)      VN_K_##NAME,
#define PAIR(NAME, name, block, from) VN_K_##NAME, VN_K_##NAME##_EXPERIMENT,
#define EXPERIMENT(NAME, name, push)  VN_K_##NAME,
#include "libgpu/kernels.def"
	VN_K_LINEAR_64X128, /* tiles, tokens by columns; all give the same bits */
	VN_K_LINEAR_64X64,
	VN_K_LINEAR_32X32,
	VN_K_LINEAR_16X64,
	VN_K_LINEAR_VEC,      /* one token */
	VN_K_LINEAR_VEC_KEPT, /* the same, into the cache */
	VN_K_COOP_8X8,        /* tiles of cooperative matrices, tokens by columns: product.c */
	VN_K_COOP_8X4,
	VN_K_COOP_4X4,
	VN_K_COOP_2X4,
	VN_K_COOP_2X2,
	VN_K_COOP_1X2,
	VN_K_LINEAR_GATED, /* two products and their gated product (fuse.h): of one token; in tiles, half of either */
	VN_K_LINEAR_64X128_GATED,
	VN_K_LINEAR_64X64_GATED,
	VN_K_COOP_4X4_GATED,
	VN_K_COOP_2X4_GATED,
	VN_K_COOP_2X2_GATED,
	/* the code is chosen by the widest head of the plan; an experiment has another shader */
	VN_K_ATTENTION,
	VN_K_ATTENTION_EXPERIMENT,
	/* with cooperative matrices, for heads of at most this width (up to 128: multiples of 8);
	 * loaded if the device has the matrices and the plan has such heads */
	VN_K_ATTENTION_COOP_64,
	VN_K_ATTENTION_COOP_128,
	VN_K_ATTENTION_COOP_256,
	VN_K_PAGED_PUT, /* this and the next: only with a paged cache */
	VN_K_PAGED_GET,
	VN_K_FROM_BF16, /* weights, when they are loaded */
	VN_N_KERNELS
} vn_kernel;

typedef struct vn_shader {
	const uint32_t *words; /* NULL: the policy, the device or the plan has no such shader */
	size_t          bytes;
	vn_coop         coop; /* the cooperative matrices it uses */
} vn_shader;

typedef struct vn_kernels {
	vn_device       *d;
	VkPipelineLayout layout; /* the device's, as are the pipelines (pipelines.h) */
	VkPipelineCache  cache;
	char            *cache_dir; /* NULL: as in vn_gpu_options */
	vn_shader        shader[VN_N_KERNELS];
	VkPipeline       pipeline[VN_N_KERNELS]; /* NULL: not needed so far */
	bool             cache_hit;              /* a valid cache file was read */
	int              had;                    /* pipelines that the device had before */
	double           seconds;                /* spent on building pipelines */
	/* rows of a cooperative matrix; 0: the policy or the device has none */
	int              side;
	bool             float_sums;
} vn_kernels;

/* Returns the shader of a node's operation: the experiment's, if one changes the node. usual: the
 * first of a PAIR of kernels.def, or VN_K_ATTENTION. */
vn_kernel vn_kernel_of(vn_kernel usual, const vn_node *n);

/* Returns the shader of attention for many queries and heads of this width. */
vn_kernel vn_kernel_of_attention(const vn_kernels *k, int head_dim);

/* Selects the shaders for the policy, for a paged or contiguous cache, with those of experiments if
 * the plan has one. cache_dir: as in vn_gpu_options; a cache that cannot be read or written is not
 * an error. */
vn_status vn_kernels_create(vn_device *d, vn_kernels *k, const vn_plan *plan, vn_policy policy, bool paged,
                            const char *cache_dir, vn_error *err);
/* Saves the compiled shaders for the next run. k may be zeroed. */
void      vn_kernels_destroy(vn_kernels *k);

/* Finds a shader's pipeline on the device, or builds it. k must not have it yet. */
vn_status vn_kernel_build(vn_kernels *k, vn_kernel which, vn_error *err);
/* Returns a shader's pipeline, and builds it if it does not exist yet. */
vn_status vn_kernel_pipeline(vn_kernels *k, vn_kernel which, VkPipeline *pipeline, vn_error *err);

const char *vn_kernel_name(vn_kernel k);
uint32_t    vn_kernel_push_bytes(vn_kernel k);
/* Does the shader read its push block from memory, so that only the block's address is pushed
 * (push.glsl)? True for shaders whose block changes from one decoded token to the next: the
 * commands then stay the same (tape.h). */
bool        vn_kernel_in_memory(vn_kernel k);

/* The push blocks, with letters as in the head of each shader. Addresses are VkDeviceAddress. None
 * exceeds 128 bytes, the minimum that a device must support. Fields after a comment "experiment"
 * are pushed only to the experiment's shader. */

typedef struct vn_push_embed {
	uint64_t w, ids, y;
	uint32_t T, D;
} vn_push_embed;

typedef struct vn_push_rms_norm {
	uint64_t x, g, y;
	uint32_t R, N;
	float    eps, offset;
	/* experiment */
	float    divisor;
	uint32_t flags, G, pad;
} vn_push_rms_norm;

typedef struct vn_push_layer_norm {
	uint64_t x, g, b, y;
	uint32_t R, N;
	float    eps;
	uint32_t has_bias;
	float    offset;
	/* experiment */
	float    divisor;
	uint32_t flags, keep_mean;
} vn_push_layer_norm;

typedef struct vn_push_slice {
	uint64_t x, y;
	uint32_t R, N, from, width;
} vn_push_slice;

typedef struct vn_push_linear {
	uint64_t x, w, b, y;
	uint32_t T, M, N, y_stride;
	uint32_t has_bias, width;
	uint64_t sums;
	uint32_t shares, y_wide;
} vn_push_linear;

typedef struct vn_push_linear_gated {
	vn_push_linear gate;
	uint64_t       w, b, up, y; /* of the second product; the gated one */
	uint32_t       up_has_bias, act;
} vn_push_linear_gated;

typedef struct vn_push_add_norm {
	uint64_t a, b, x, g, y;
	uint64_t sums, bias;
	uint32_t R, N;
	float    eps, offset;
	uint32_t shares, has_bias;
} vn_push_add_norm;

typedef struct vn_push_norm_rope {
	uint64_t x, g, table, y, z;
	uint32_t rows, H, K, R;
	float    eps, offset;
} vn_push_norm_rope;

typedef struct vn_push_rope {
	uint64_t x, table, y;
	uint32_t T, H, K, R;
	uint32_t pairing, pad; /* experiment */
} vn_push_rope;

typedef struct vn_push_attention {
	uint64_t q, k, v, y;
	uint32_t T, S, P, H, G, K;
	uint32_t causal, window;
	float    scale;
	uint32_t h0, j0,
		n_keys; /* attn_scores, attn_probs: head, keys; others: parts, the first key and the keys of each */
	uint32_t B;
	uint64_t table;
	/* experiment */
	int32_t  ahead;
	uint32_t head_map, leak, padding;
	/* packed: six changes in one word, because 124 of the 128 bytes are taken (mask.glsl) */
	uint32_t packed, cache_block, before;
} vn_push_attention;

typedef struct vn_push_pages {
	uint64_t rows, pool, table;
	uint32_t at, n, G, K, B, pad;
} vn_push_pages;

typedef struct vn_push_map {
	uint64_t a, b, y;
	uint32_t n, act, eights;
	uint32_t form; /* experiment */
} vn_push_map;

typedef struct vn_push_append {
	uint64_t from, to;
	uint32_t n, eights;
} vn_push_append;

typedef struct vn_push_from_bf16 {
	uint64_t x, over;
	uint32_t eights, rest;
} vn_push_from_bf16;

typedef struct vn_push_rows {
	uint64_t x, other, y;
	uint32_t T, N, P, form;
	int32_t  by;
	uint32_t inner;
} vn_push_rows;

typedef struct vn_push_causal_conv {
	uint64_t x, w, before, y;
	uint32_t T, X, J;
	uint32_t linear, forgets, ahead, last, pad; /* experiment */
} vn_push_causal_conv;

typedef struct vn_push_log_decay {
	uint64_t x, A, dt, y;
	uint32_t T, N;
	uint32_t form, pad; /* experiment */
} vn_push_log_decay;

typedef struct vn_push_delta_rule {
	uint64_t q, k, v, g, beta, before, after, y;
	uint32_t T, nk, nv, dk, dv;
	float    scale;
	uint32_t form, head_map, restart, P, transposed, pad; /* experiment */
} vn_push_delta_rule;

typedef struct vn_push_gated_norm {
	uint64_t x, z, g, y;
	uint32_t R, N;
	float    eps;
	/* experiment */
	float    divisor;
	uint32_t flags, gate, gate_first, pad;
} vn_push_gated_norm;

#endif
