/* compile.c: see compile.h. */
#include "libgpu/compile.h"

#include "libgpu/fuse.h"
#include "libgpu/ops.h"
#include "libgpu/pieces.h"
#include "libgpu/workers.h"

/* The shaders to build, and the results. */
typedef struct compile_job {
	vn_kernels *k;
	vn_kernel   kernel[VN_N_KERNELS];
	int         n;
	vn_status   status[VN_N_KERNELS];
	vn_error    why[VN_N_KERNELS];
} compile_job;

/* ---- the list ----------------------------------------------------------------------- */

static bool is_tapped(const vn_gpu_pass *w, const vn_node *n)
{
	bool tapped = false;

	for (int k = 0; k < n->n_out; k++)
		tapped = tapped || (n->out[k] >= 0 && vn_pass_wants(w, n->out[k]));
	return tapped;
}

static void list_output(vn_gpu_pass *w, int value)
{
	const int state = w->g->plan->value[value].state;

	if (state < 0 && vn_value_streams(w->g->plan, value))
		vn_pieces_list(w, value);
	else if (state >= 0 && w->g->cache.pages.block && w->g->cache.slot[state].grows &&
	         (w->g->guard || vn_pass_wants(w, value)))
		vn_ops_gather(w, state, 0, 1);
}

static void list_taps(vn_gpu_pass *w, int node)
{
	const vn_node *n = &w->g->plan->node[node];

	for (int k = 0; k < n->n_out; k++)
		if (n->out[k] >= 0)
			list_output(w, n->out[k]);
}

/* Were the shaders of n nodes (n > 1: fused) listed for a call like this one? Marks them as
 * listed. */
static bool is_listed(vn_gpu_pass *w, int node, int n)
{
	bool listed = true;

	for (int i = node; i < node + n; i++) {
		const int64_t like = (2 * w->tokens + is_tapped(w, &w->g->plan->node[i])) * VN_FUSE_MOST + n - 1;
		listed = listed && w->g->node[i].listed == like;
		w->g->node[i].listed = like;
	}
	return listed;
}

/* Fills e->listed with the shaders of nodes that were not listed for a call like this one. */
static void list_shaders(vn_gpu_pass *w, int from, int to)
{
	vn_gpu *g = w->g;

	g->encoder.listing = true;
	for (int i = from, n; i < to; i += n) {
		n = vn_ops_fused(w, i, to);
		if (is_listed(w, i, n) || i == g->break_skip)
			continue;
		if (n > 1)
			vn_ops_encode_fused(w, i, n);
		else
			vn_ops_encode(w, i);
		for (int k = i; k < i + n; k++)
			list_taps(w, k);
	}
	g->encoder.listing = false;
}

/* ---- building ----------------------------------------------------------------------- */

static bool build_kernel(void *ctx, int place, int worker)
{
	compile_job *j = ctx;

	(void)worker;
	j->status[place] = vn_kernel_build(j->k, j->kernel[place], &j->why[place]);
	return j->status[place] == VN_OK;
}

/* Uses the pipelines as they come, while the threads build others. */
static vn_status use_each(compile_job *j, vn_workers *w, vn_encoder *e, vn_progress *bar, vn_error *err)
{
	vn_status st = VN_OK;

	for (int seen = 0; seen < j->n && !st && !(st = vn_encode_asked_to_stop(e, err));) {
		const int place = vn_workers_next(w, seen);
		if (place == VN_WORK_OVER)
			break;
		if (place != VN_WORK_NOT_YET && !(st = vn_encode_first_use(e, j->kernel[place], err)))
			vn_progress_at(bar, ++seen);
	}
	return st;
}

static vn_status build_all(compile_job *j, vn_gpu *g, vn_error *err)
{
	vn_progress bar = { 0 };
	vn_workers  w;
	vn_status   st;

	if (g->progress)
		vn_progress_start(&bar, "shader", j->n);
	vn_workers_start(&w, j->n, g->threads, build_kernel, j);
	st = use_each(j, &w, &g->encoder, &bar, err);
	vn_workers_stop(&w);
	vn_progress_stop(&bar);
	for (int i = 0; i < j->n && !st; i++)
		if (j->status[i])
			st = vn_fail(err, j->status[i], "%s", j->why[i].text);
	return st;
}

static bool is_missing(const vn_gpu *g, int kernel)
{
	return g->encoder.listed[kernel] && !g->kernels.pipeline[kernel];
}

static vn_status build_missing(vn_gpu *g, vn_error *err)
{
	compile_job  j = { .k = &g->kernels };
	const double begun = vn_seconds();

	for (int i = 0; i < VN_N_KERNELS; i++)
		if (is_missing(g, i))
			j.kernel[j.n++] = (vn_kernel)i;
	const vn_status st = build_all(&j, g, err);
	g->kernels.seconds += vn_seconds() - begun;
	return st;
}

vn_status vn_compile(vn_gpu_pass *w, int from, int to, vn_error *err)
{
	bool missing = false;

	list_shaders(w, from, to);
	for (int i = 0; i < VN_N_KERNELS; i++)
		missing = missing || is_missing(w->g, i);
	return missing ? build_missing(w->g, err) : VN_OK;
}
