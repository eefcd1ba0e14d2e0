/* gpu.c: creates and destroys the GPU engine, and states its facts. The pass: pass.c. */
#include "libgpu/gpu.h"
#include "libgpu/exchange.h"
#include "libgpu/fuse.h"
#include "libgpu/load.h"
#include "libgpu/pass.h"
#include "libgpu/pipeline_cache.h"

#include "libref/base/text.h"

#include <stdlib.h>
#include <string.h>

#define KMAX                 256 /* shaders/attention.comp, delta_rule.comp */
#define GROUPS_MAX           256 /* top_k.comp */
#define DEFAULT_BLOCK_TOKENS 16  /* tokens per block, by default */
#define BLOCK_MAX            65536

static vn_status check_widths(const vn_plan *p, const vn_node *n, vn_error *err)
{
	const vn_op_info *op = vn_op_get(n->op);

	for (int k = 0; k < n->n_in + 1; k++) {
		const bool output = k == n->n_in;
		const int  v = output ? n->out[0] : n->in[k];
		const bool wide = vn_value_wide(p, v);
		if (!(output ? op->either_out && !vn_value_streams(p, v) : op->either_in >> k & 1) &&
		    wide != (output ? op->wide_out : op->wide_in >> k & 1))
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: stored in %s, but the GPU engine's %s %s %s", p->value[v].name,
			               wide ? "float32" : "the storage format", op->name, output ? "writes" : "reads",
			               wide ? "the storage format" : "float32");
	}
	return VN_OK;
}

/* Checks what the shaders require beyond the rules of a plan. */
static vn_status check_plan(const vn_plan *p, vn_error *err)
{
	vn_status st = vn_plan_check(p, err);

	for (int i = 0; i < p->n_nodes && !st; i++) {
		const vn_node *n = &p->node[i];
		const char    *name = p->value[n->out[0]].name;
		const int      width = n->op == VN_OP_ATTENTION    ? n->c.attention.head_dim
		                       : n->op == VN_OP_DELTA_RULE ? n->c.delta.key_dim
		                                                   : 0;
		const int      values = n->op == VN_OP_ATTENTION ? vn_attention_value_dim(&n->c) : 0;
		if (width > KMAX || values > KMAX)
			st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s: head width %d; the GPU engine supports at most %d", name,
			             width > values ? width : values, KMAX);
		else if (n->op == VN_OP_EXPERTS && vn_shape_count(&p->weight[n->w[0]].shape) > INT32_MAX)
			st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s: a matrix of an expert has more than 2^31 elements", name);
		else if (n->op == VN_OP_ROPE && n->c.rope.rope.pairs == VN_PAIR_ACROSS)
			st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s: the GPU engine does not rotate pairs across a head", name);
		else if (n->op == VN_OP_TOP_K && n->c.top_k.groups > GROUPS_MAX)
			st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %d groups of experts; the GPU engine supports at most %d", name,
			             n->c.top_k.groups, GROUPS_MAX);
		else if (n->op == VN_OP_ROUTE && vn_value_wide(p, n->in[VN_ROUTE_LOGITS]) && !vn_value_wide(p, n->out[0]))
			st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s: the GPU engine makes float32 of float32 logits", name);
		else
			st = check_widths(p, n, err);
	}
	return st;
}

/* Do both rotate by the same angles? Then they share a table. */
static bool same_angles(const vn_node *a, const vn_node *b)
{
	return memcmp(&a->c.rope, &b->c.rope, sizeof a->c.rope) == 0;
}

/* Returns the number of the table that a rope node reads: that of an earlier one, or a new one. */
static int share_rope(vn_gpu *g, int node)
{
	int r = 0;

	while (r < g->n_ropes && !same_angles(&g->plan->node[g->rope[r].node], &g->plan->node[node]))
		r++;
	if (r == g->n_ropes)
		g->rope[g->n_ropes++] = (vn_gpu_rope) {
			.node = node, .kept = { .rope = &g->plan->node[node].c.rope.rope, .lists = g->plan->list }
		};
	return r;
}

static vn_status note_nodes(vn_gpu *g, vn_error *err)
{
	const vn_plan *p = g->plan;
	const size_t   n = p->n_nodes ? (size_t)p->n_nodes : 1;

	g->node = calloc(n, sizeof(*g->node));
	g->rope = calloc(n, sizeof(*g->rope));
	g->share = calloc(n + 1, sizeof(*g->share));
	g->node_ms = calloc(n, sizeof(*g->node_ms));
	g->stamp = calloc(n + 1, sizeof(*g->stamp));
	g->made = calloc(p->n_values ? (size_t)p->n_values : 1, sizeof(*g->made));
	if (!g->node || !g->rope || !g->share || !g->node_ms || !g->stamp || !g->made)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for an engine of %d nodes", p->n_nodes);
	for (int i = 0; i < p->n_nodes; i++) {
		g->node[i] = (vn_gpu_node) { .fitting = vn_fuse_fitting(p, i),
			                         .rope = -1,
			                         .experiment = vn_node_is_experiment(&p->node[i]) };
		if (p->node[i].op == VN_OP_ROPE)
			g->node[i].rope = share_rope(g, i);
	}
	return VN_OK;
}

static void destroy_gpu(void *gpu)
{
	vn_gpu *g = gpu;
	if (!g)
		return;
	vn_pass_give_up(g);
	if (g->device.stuck) { /* its threads may wake, and use all of this */
		static void *volatile kept;
		kept = g; /* so that a sanitizer sees no leak */
		(void)kept;
		return;
	}
	vn_encoder_destroy(&g->encoder);
	vn_guard_destroy(&g->device, &g->zones);
	vn_buffer_destroy(&g->device, &g->scratch);
	vn_buffer_destroy(&g->device, &g->sums);
	vn_buffer_destroy(&g->device, &g->pairs);
	vn_buffer_destroy(&g->device, &g->upload);
	vn_buffer_destroy(&g->device, &g->foreign);
	vn_buffer_destroy(&g->device, &g->counter);
	vn_gpu_weights_destroy(&g->device, &g->weights);
	vn_staging_destroy(&g->device, &g->staging);
	vn_cache_destroy(&g->device, &g->cache);
	vn_arena_destroy(&g->device, &g->arena);
	if (g->device.device)
		vn_kernels_destroy(&g->kernels);
	vn_gpu_close_device(&g->device);
	for (int r = 0; r < g->n_ropes; r++)
		vn_rope_table_free(&g->rope[r].kept);
	VN_FREE(g->made, g->stamp, g->node_ms, g->share, g->rope, g->node, g);
}

static vn_status create_parts(vn_gpu *g, const vn_tensor *weights, const vn_gpu_options *o, vn_error *err)
{
	const vn_plan    *p = g->plan;
	const vn_gpu_load how = {
		.storage = o->policy.storage, .guard = o->guard, .progress = o->progress, .threads = o->threads
	};
	const int block = !o->paged ? 0 : o->block ? o->block : DEFAULT_BLOCK_TOKENS;
	vn_status st;

	if (block < 0 || block > BLOCK_MAX)
		return vn_fail(err, VN_ERR_USAGE, "block size %d; expected 1 to %d", block, BLOCK_MAX);
	if ((st = check_plan(p, err)) || (st = note_nodes(g, err)) ||
	    (st = vn_gpu_open_device(&g->device, o->device, o->policy.sums == VN_F16, o->validate, err)) ||
	    (st = vn_kernels_cache_in(&g->device, o->cache_dir, err)) ||
	    (st = vn_kernels_create(&g->device, &g->kernels, p, o->policy, o->paged, err)) ||
	    (st = vn_encoder_create(&g->device, &g->kernels, (uint32_t)p->n_nodes + 1, &g->encoder, err)))
		return st;
	g->encoder.stop = o->stop;
	g->encoder.stop_ctx = o->stop_ctx;
	if ((st = vn_arena_create(&g->arena, p, o->policy, o->guard, o->paged, err)) ||
	    (st = vn_cache_create(&g->cache, p, o->policy, (vn_pages) { .block = block, .scatter = o->scatter }, o->guard,
	                          err)) ||
	    (st = vn_staging_create(&g->device, &g->staging, o->staging, o->guard, err)) ||
	    (st = vn_gpu_weights_create(&g->encoder, &g->weights, p, weights, &how, err)))
		return st;
	return vn_device_complaint(&g->device, err);
}

vn_status vn_gpu_create(const vn_plan *plan, const vn_tensor *weights, const vn_gpu_options *o, vn_gpu **gpu,
                        vn_error *err)
{
	char      all[40];
	vn_gpu   *g;
	vn_status st;

	*gpu = NULL;
	if (!vn_text_is_word(VN_GPU_POLICIES, vn_policy_name(o->policy)))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "the GPU engine computes in %s, not in %s",
		               vn_text_words(VN_GPU_POLICIES, all, sizeof all), vn_policy_name(o->policy));
	if (!(g = malloc(sizeof *g)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for an engine");
	*g = (vn_gpu) { .plan = plan,
		            .policy = o->policy,
		            .guard = o->guard,
		            .progress = o->progress,
		            .threads = o->threads,
		            .early = o->early,
		            .n_early = o->n_early,
		            .break_skip = -1,
		            .break_overrun = -1 };
	if ((st = create_parts(g, weights, o, err)))
		destroy_gpu(g);
	else
		*gpu = g;
	return st;
}

static vn_status run_forward(void *gpu, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	vn_gpu   *g = gpu;
	vn_status st;

	if ((st = vn_pass_begin(g, ids, tokens, taps, err)) || (st = vn_pass_run(g, 0, g->plan->n_nodes, err)))
		return st;
	return vn_pass_end(g, true, err);
}

static int64_t position_of(const void *gpu)
{
	const vn_gpu *g = gpu;
	return g->position;
}

static void reset_run(void *gpu)
{
	vn_gpu *g = gpu;
	vn_pass_give_up(g);
	g->position = 0;
}

bool vn_gpu_compiles(const vn_gpu *g)
{
	return !g->kernels.cache_hit && vn_pipeline_cache_writable(&g->device, g->device.pipelines->cache_dir);
}

static double get_compile_seconds(const void *gpu)
{
	const vn_gpu *g = gpu;
	return g->kernels.seconds;
}

static void write_facts(const void *gpu, vn_facts *f)
{
	const vn_gpu        *g = gpu;
	const vn_gpu_device *d = &g->device.info;

	vn_facts_set(f, "engine", "gpu");
	vn_facts_set(f, "device", "%s", d->name);
	vn_facts_set(f, "device_type", "%s", d->type);
	vn_facts_set(f, "driver", "%s", d->driver);
	vn_facts_set(f, "vulkan", "%s", d->api);
	vn_facts_set(f, "precision", "%s", vn_policy_name(g->policy));
	vn_facts_set(f, "kv", "%s", g->cache.pages.block ? "paged" : "contiguous");
	if (g->cache.pages.block)
		vn_facts_set(f, "block_size", "%lld", (long long)g->cache.pages.block);
	vn_facts_set(f, "bytes_weights", "%lld", (long long)g->weights.bytes);
	vn_facts_set(f, "bytes_arena", "%lld",
	             (long long)(g->arena.bytes + (int64_t)(g->scratch.held + g->sums.held + g->pairs.held +
	                                                    g->upload.held + g->foreign.held)));
	vn_facts_set(f, "bytes_cache", "%lld", (long long)g->cache.bytes);
	vn_facts_set(f, "bytes_staging", "%lld", (long long)(g->staging.buf[0].held + g->staging.buf[1].held));
	vn_facts_set(f, "submits", "%d", g->encoder.submits);
	if (g->timed)
		vn_facts_set(f, "device_ms", "%.3f", g->total_ms);
	vn_facts_set(f, "weights_overflowed", "%lld", (long long)g->weights.overflowed);
	if (g->weights.overflowed)
		vn_facts_set(f, "weights_overflowed_in", "%s", g->plan->weight[g->weights.first_overflowed].name);
}

void vn_gpu_time_nodes(vn_gpu *g, bool on)
{
	g->time_nodes = on;
}

const double *vn_gpu_node_ms(const vn_gpu *g, double *total)
{
	if (total)
		*total = g->timed ? g->total_ms : 0.0;
	return g->timed && g->times_nodes ? g->node_ms : NULL;
}

/* clang-format off */
const vn_engine_ops vn_gpu_ops = {
	.forward = run_forward, .position = position_of, .reset = reset_run, .facts = write_facts, .destroy = destroy_gpu,
	.begin = vn_pass_begin, .run = vn_pass_run, .read = vn_pass_read, .write = vn_pass_write, .flush = vn_pass_flush,
		.end = vn_pass_end,
	.compiling = get_compile_seconds,
};
/* clang-format on */
