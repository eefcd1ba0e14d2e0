/* engine.h: what an engine is, and a pass of it over its plan: data, and where values are. pass.h
 * runs it. Inside libgpu only; tests use it to see the guard work.
 */
#pragma once

#include "libgpu/arena.h"
#include "libgpu/cache.h"
#include "libgpu/encode.h"
#include "libgpu/guard.h"
#include "libgpu/kernels.h"
#include "libgpu/product.h"
#include "libgpu/staging.h"
#include "libgpu/tables.h"
#include "libgpu/weights.h"

#include "libref/base/progress.h"
#include "libref/plan/tap.h"

/* One forward pass while it is recorded. */
typedef struct vn_gpu_pass {
	struct vn_gpu *g;
	const vn_taps *taps;         /* NULL: none */
	int64_t        tokens, past; /* T, P; the keys S are their sum */
	int64_t        first, count; /* rows that the taps select */
} vn_gpu_pass;

/* What is known of a node. */
typedef struct vn_gpu_node {
	unsigned fitting;    /* vn_fuse_fitting */
	int      rope;       /* its settings, in vn_gpu.rope; -1 */
	int64_t  listed;     /* the call that its shaders were listed for (compile.c) */
	bool     joined;     /* in the last call, computed by the command of the node before */
	bool     experiment; /* vn_node_is_experiment: it has no shader */
} vn_gpu_node;

/* Settings of rope, and their table of angles. */
typedef struct vn_gpu_rope {
	int           node; /* a node with these settings */
	VkDeviceSize  at;   /* of the call's table, in `upload` */
	vn_rope_table kept;
} vn_gpu_rope;

typedef struct vn_gpu {
	const vn_plan *plan;
	vn_policy      policy;
	bool           guard, progress;
	int            threads; /* as in vn_gpu_options */
	const int     *early;   /* (n_early): vn_gpu_options */
	int            n_early;
	int64_t        position;

	vn_device      device;
	vn_kernels     kernels;
	vn_encoder     encoder;
	vn_gpu_weights weights;
	vn_arena       arena;
	vn_cache       cache;
	vn_staging     staging;
	vn_guard       zones;
	vn_buffer      scratch; /* for values that come in pieces */
	/* partial sums of products with divided inputs, and of attention with divided keys */
	vn_buffer      sums;
	/* of experts: which pairs each of them has, and what they make of a gate and an up */
	vn_buffer      pairs;
	vn_buffer      upload;  /* ids, then the tables of rope */
	vn_buffer      foreign; /* staging of values that are written */
	VkDeviceSize   foreign_used;
	vn_buffer      counter; /* on a software device: how many nodes of the call are computed, for progress */

	/* The open call. */
	bool        open;
	vn_gpu_pass walk;
	vn_taps     taps; /* the target of walk.taps */
	int         next; /* earlier nodes were run or skipped */
	bool       *made; /* (n_values): roots that were run or written in this call */
	vn_progress bar;

	vn_gpu_node *node; /* (n_nodes) */
	int          n_ropes;
	vn_gpu_rope *rope; /* (n_ropes): the different ones of the plan */

	double   *share;   /* (n_nodes + 1), of the time of a call (gemm.h) */
	double   *node_ms; /* (n_nodes) */
	uint64_t *stamp;   /* (n_nodes + 1) */
	double    total_ms;
	bool      timed;
	bool      time_nodes, times_nodes; /* for calls to come; for the last call */

	/* For tests: a node to leave out; a node that writes one row too many. -1: none. */
	int  break_skip, break_overrun;
	bool break_fusion; /* for tests: every node by itself */
} vn_gpu;

/* Do the commands of a node not wait for earlier ones? */
static inline bool vn_gpu_is_early(const vn_gpu *g, int node)
{
	for (int i = 0; i < g->n_early; i++)
		if (g->early[i] == g->plan->node[node].out[0])
			return true;
	return false;
}

/* Returns where a value of the call is; NULL: it is made in pieces, or shows a state. */
static inline vn_buffer *vn_gpu_place(vn_gpu *g, int value)
{
	if (g->arena.state_of[value] >= 0)
		return &g->cache.slot[g->arena.state_of[value]].call;
	return g->arena.slot_of[value] >= 0 ? &g->arena.slot[g->arena.slot_of[value]].b : NULL;
}

static inline int64_t vn_pass_elements(const vn_gpu_pass *w, int value)
{
	const vn_shape s = vn_value_shape(&w->g->plan->value[value], w->tokens, w->past + w->tokens);
	return vn_shape_count(&s);
}

/* Returns the format in which a value is stored. */
static inline vn_dtype vn_pass_dtype(const vn_gpu_pass *w, int value)
{
	return vn_policy_dtype(w->g->policy, vn_value_wide(w->g->plan, value));
}

static inline bool vn_pass_wants(const vn_gpu_pass *w, int value)
{
	return w->taps && w->count > 0 && w->taps->want[value];
}
