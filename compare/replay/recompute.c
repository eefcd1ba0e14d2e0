/* recompute.c: see recompute.h: what was captured, and the current checkpoint. The computation is
 * in recompute_run.c. */
#include "compare/replay/candidate.h"
#include "compare/replay/recompute_internal.h"

#include "libref/ops/blas.h"

#include "libref/base/alloc.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 1 << 25 }; /* the most logits that are computed in full; above, rows of the vocabulary are sampled */

/* ---- what was captured -------------------------------------------------------------------- */

static const vn_checkpoint *captured_point(const vn_recompute *p, int step, int root)
{
	return p->point[(size_t)step * (size_t)p->site.plan->n_values + (size_t)root];
}

vn_held vn_recompute_held(const vn_recompute *p, int root)
{
	const vn_value *v = &p->site.plan->value[root];
	vn_held         held = VN_HELD_ALL;

	if (root >= p->site.plan->n_values || root == p->site.target || root == p->disregarded || v->state >= 0 ||
	    vn_value_streams(p->site.plan, root))
		return VN_HELD_NOT;
	for (int i = 0; i <= p->when; i++) {
		const vn_checkpoint *point = captured_point(p, i, root);
		if (!point || point->replay.recorder_fault)
			return VN_HELD_NOT;
		const vn_shape *is = &vn_recording_entry(p->o->cand, point->cand)->shape;
		const vn_shape  all = vn_value_shape(v, p->step[i].tokens, 0), some = vn_value_shape(v, p->step[i].rows, 0);
		if (!vn_shape_equal(&some, is))
			return VN_HELD_NOT;
		if (!vn_shape_equal(&all, is))
			held = VN_HELD_ROWS;
	}
	return held;
}

bool vn_recompute_has(const vn_recompute *p, int value)
{
	return vn_recompute_held(p, vn_plan_root(p->site.plan, value)) == VN_HELD_ALL;
}

bool vn_recompute_known(const vn_recompute *p, int root)
{
	const vn_held held = vn_recompute_held(p, root);
	return held == VN_HELD_ALL || (held == VN_HELD_ROWS && p->narrow);
}

/* Writes n numbers of the candidate's checkpoint k in format w, as they are kept in `as`. */
static vn_status load_point(vn_recompute *p, const vn_recompute_width *w, const vn_checkpoint *k, vn_dtype as, size_t n,
                            void *to, vn_error *err)
{
	unsigned char *own;
	vn_tensor      t;
	vn_status      st = vn_replay_candidate(p->o, k, k->replay.columns, &t, &own, err);

	if (st)
		return st;
	if (w->size == 8)
		vn_to_f64(to, t.data, t.dtype, n);
	else
		vn_to_f32_as(to, t.data, t.dtype, as, n);
	free(own);
	vn_recording_release(p->o->cand, k->cand);
	return VN_OK;
}

bool vn_recompute_has_state(const vn_recompute *p, int step, int value)
{
	const vn_plan       *plan = p->site.plan;
	const int            root = value < 0 || value >= plan->n_values ? -1 : vn_plan_root(plan, value);
	const vn_checkpoint *k = root < 0 ? NULL : captured_point(p, step, root);

	if (!k || !k->replayed || k->replay.recorder_fault)
		return false;
	const vn_shape all = vn_value_shape(&plan->value[root], 0, 0);
	return vn_shape_equal(&all, &vn_recording_entry(p->o->cand, k->cand)->shape);
}

vn_status vn_recompute_load_state(vn_recompute *p, vn_recompute_width *w, int step, int value, void *data,
                                  vn_error *err)
{
	const int            root = vn_plan_root(p->site.plan, value);
	const vn_checkpoint *k = captured_point(p, step, root);
	const vn_shape       all = vn_value_shape(&p->site.plan->value[root], 0, 0);

	return load_point(p, w, k, vn_policy_dtype(w->policy, vn_value_wide(p->site.plan, root)),
	                  (size_t)vn_shape_count(&all), data, err);
}

vn_status vn_recompute_load(vn_recompute *p, vn_recompute_width *w, int root, void **data, vn_error *err)
{
	const int64_t  row = vn_value_row(&p->site.plan->value[root]);
	const vn_dtype as = vn_policy_dtype(w->policy, vn_value_wide(p->site.plan, root));
	char          *x = *data ? *data : vn_alloc_zero((size_t)(p->site.tokens * row), w->size);
	vn_status      st = VN_OK;

	*data = x;
	for (int i = 0; !st && i <= p->when; i++) {
		const vn_step       *s = &p->step[i];
		const vn_checkpoint *k = captured_point(p, i, root);
		const size_t         n = (size_t)(s->rows * row), at = (size_t)((s->position + s->first_row) * row);
		st = load_point(p, w, k, as, n, x + at * w->size, err);
	}
	return st;
}

/* ---- moving to a checkpoint ------------------------------------------------------------------ */

static void forget_values(const vn_recompute *p, vn_recompute_width *w)
{
	free(w->sampled);
	w->sampled = NULL;
	for (int v = 0; w->unmodified && v < p->site.plan->n_values; v++) {
		free(w->unmodified[v]);
		w->unmodified[v] = NULL;
	}
}

static void forget_checkpoint(vn_recompute *p)
{
	for (int w = 0; w < VN_N_WIDTHS; w++)
		forget_values(p, &p->w[w]);
	for (int i = 0; i < VN_RECOMPUTE_VARIANTS; i++) {
		forget_values(p, &p->variant[i].w);
		free(p->variant[i].w.unmodified);
		vn_plan_destroy(p->variant[i].plan);
		p->variant[i] = (vn_recompute_variant) { 0 };
	}
	if (p->at >= 0 && !p->own)
		vn_recording_release(p->o->cand, p->all->of[p->at].cand);
	VN_FREE(p->own, p->site.begins);
	p->site.begins = NULL;
	p->own = NULL;
	p->at = -1;
	p->n_sample = 0;
	p->site.sampled = false;
	p->some.n = 0;
}

/* Some rows of the checkpoint at equal distances, or all. */
static void choose_rows(vn_recompute *p)
{
	p->n_sample = p->rows < VN_RECOMPUTE_SAMPLE ? (int)p->rows : VN_RECOMPUTE_SAMPLE;
	for (int i = 0; i < p->n_sample; i++)
		p->sample[i] = p->site.first + (i ? (p->rows - 1) * i / (p->n_sample - 1) : 0);
}

int64_t vn_recompute_row(const vn_recompute *p, int i)
{
	return p->site.sampled ? i : p->sample[i] - p->site.first;
}

static vn_status take_candidate(vn_recompute *p, vn_error *err)
{
	const vn_checkpoint *k = &p->all->of[p->at];
	const vn_value      *v = &p->site.plan->value[p->site.target];
	const vn_step       *s = &p->step[p->when];
	unsigned char       *sorted;
	vn_tensor            t;
	vn_status            st = vn_replay_candidate(p->o, k, k->replay.columns, &t, &sorted, err);

	const bool last = vn_entry_last_alone(vn_recording_entry(p->o->cand, k->cand), s->rows);
	p->site.first = s->position + s->first_row + (last ? s->rows - 1 : 0);
	p->rows = last ? 1 : s->rows;
	if (st)
		return st;
	p->site.cand = t;
	if (sorted) {
		p->own = sorted;
		vn_recording_release(p->o->cand, k->cand);
		return VN_OK;
	}
	if (v->size[0] != VN_T || v->node < 0 || p->site.plan->node[v->node].op != VN_OP_LINEAR)
		return VN_OK;
	choose_rows(p);
	if (p->rows <= VN_RECOMPUTE_SAMPLE || vn_value_row(v) * p->rows <= MANY)
		return VN_OK;
	const size_t row = (size_t)vn_value_row(v) * vn_dtype_size(t.dtype);
	char        *x = p->own = vn_alloc(VN_RECOMPUTE_SAMPLE, row);
	for (int i = 0; i < p->n_sample; i++)
		memcpy(x + (size_t)i * row, (const char *)t.data + (size_t)vn_recompute_row(p, i) * row, row);
	p->site.sampled = true;
	p->site.cand.data = x;
	p->site.cand.shape.dim[0] = p->n_sample;
	vn_recording_release(p->o->cand, k->cand);
	return VN_OK;
}

/* all: for every token, not only those of the checkpoint. */
static void find_span(vn_recompute *p, int value, bool all)
{
	enum { ROWS = 1, ALL };
	const int     root = vn_plan_root(p->site.plan, value), node = p->site.plan->value[root].node;
	const vn_held held = vn_recompute_held(p, root);

	if (p->seen[node] >= (all ? ALL : ROWS) || held == VN_HELD_ALL || (held == VN_HELD_ROWS && !all))
		return;
	if (!p->seen[node])
		p->site.span[p->site.n_span++] = node;
	p->seen[node] = all ? ALL : ROWS;
	p->narrow = p->narrow && held != VN_HELD_ROWS;
	for (int i = 0; i < p->site.plan->node[node].n_in; i++)
		find_span(p, p->site.plan->node[node].in[i], all || vn_op_mixes_tokens(p->site.plan->node[node].op, i));
}

static bool has_experts(const vn_recompute *p)
{
	bool has = false;

	for (int i = 0; i < p->site.n_span; i++)
		has = has || p->site.plan->node[p->site.span[i]].op == VN_OP_EXPERTS;
	return has;
}

static void find_calls(vn_recompute *p)
{
	vn_site       *s = &p->site;
	const vn_step *call;
	const int      n = vn_recording_calls(p->o->cand, &call);

	s->prompt = n > 1 ? call[1].position : s->tokens;
	s->begins_later = false;
	s->begins = vn_alloc((size_t)s->tokens, sizeof *s->begins);
	for (int64_t i = 0; i < s->tokens; i++)
		s->begins[i] = -1;
	for (int k = 1; k < n; k++)
		for (int64_t i = call[k].position; call[k].tokens > 1 && i < call[k].position + call[k].tokens && i < s->tokens;
		     i++) {
			s->begins[i] = call[k].position;
			s->begins_later = s->begins_later || i >= s->first;
		}
}

static bool steps_follow(const vn_recompute *p, int upto)
{
	int64_t position = 0;

	for (int i = 0; i <= upto; position += p->step[i++].tokens)
		if (!vn_replay_step_follows(p->o, &p->step[i], position))
			return false;
	return true;
}

vn_status vn_recompute_at(vn_recompute *p, int point, vn_error *err)
{
	const vn_checkpoint *k = &p->all->of[point];
	const int            root = vn_names_root(&p->names, k->name);

	forget_checkpoint(p);
	p->when = 0;
	while (p->when < p->n_steps && p->step[p->when].number != k->step)
		p->when++;
	if (root < 0 || p->when == p->n_steps || !k->m.n || !steps_follow(p, p->when))
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s cannot be recomputed: not a value of the plan, or recorded steps before it are missing",
		               k->name);
	p->at = point;
	p->site.target = root;
	p->disregarded = -1;
	p->site.tokens = p->step[p->when].position + p->step[p->when].tokens;
	p->site.n_span = 0;
	p->narrow = true;
	memset(p->seen, 0, (size_t)p->site.plan->n_nodes);
	p->site.axes = vn_entry_axes(vn_recording_entry(p->o->ref, k->ref));
	find_span(p, root, p->site.plan->value[root].state >= 0);
	if (has_experts(p)) /* a mistake may read those of any layer */
		for (int i = 0; i < p->site.plan->n_nodes; i++)
			vn_model_need_experts(p->o->model, &p->site.plan->node[i]);
	const vn_status st = take_candidate(p, err);
	if (!st)
		find_calls(p);
	return st;
}

void vn_recompute_disregard(vn_recompute *p, int value)
{
	p->disregarded = value < 0 ? -1 : vn_plan_root(p->site.plan, value);
}

const vn_site *vn_recompute_site(const vn_recompute *p)
{
	return &p->site;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* If a value has two names, takes the one outside its limits, as a replay does. */
static void find_points(vn_recompute *p)
{
	const size_t values = (size_t)p->site.plan->n_values;

	for (int i = 0; i < p->all->n; i++) {
		vn_checkpoint *k = &p->all->of[i];
		const int      root = k->m.n ? vn_names_root(&p->names, k->name) : -1;
		for (int s = 0; root >= 0 && s < p->n_steps; s++) {
			vn_checkpoint **at = &p->point[(size_t)s * values + (size_t)root];
			if (p->step[s].number == k->step && (!*at || (*at)->status != VN_OUTSIDE))
				*at = k;
		}
	}
}

vn_status vn_recompute_create(const vn_opened *o, const vn_checkpoints *all, vn_recompute **made, vn_error *err)
{
	vn_recompute *p = *made = vn_alloc_zero(1, sizeof *p);

	p->o = o;
	p->all = all;
	p->at = p->disregarded = -1;
	p->site.plan = vn_model_plan(o->model);
	p->site.weights = vn_model_weights(o->model);
	p->n_steps = vn_recording_steps(o->cand, &p->step);
	p->threads = o->request.options->threads > 0 ? o->request.options->threads : omp_get_num_procs();
	p->w[VN_OWN_WIDTH].policy = o->policy;
	p->w[VN_FINE_WIDTH].policy = vn_policy_fine(o->policy);
	p->w[VN_HALF_SUMS].policy = o->policy;
	p->w[VN_HALF_SUMS].policy.sums = VN_F16;
	p->w[VN_IN_BF16].policy = (vn_policy) { .storage = VN_BF16, .sums = VN_F32 };
	p->w[VN_IN_F16].policy = (vn_policy) { .storage = VN_F16, .sums = VN_F32 };
	vn_names_init(&p->names, p->site.plan);
	for (int i = 0; i < VN_N_WIDTHS; i++) {
		p->w[i].eval = vn_eval_for(p->w[i].policy);
		p->w[i].size = vn_dtype_size(p->w[i].eval->width);
		p->w[i].unmodified = vn_alloc_zero((size_t)p->site.plan->n_values, sizeof *p->w[i].unmodified);
	}
	p->point = vn_alloc_zero((size_t)p->n_steps * (size_t)p->site.plan->n_values, sizeof *p->point);
	p->site.span = vn_alloc((size_t)p->site.plan->n_nodes, sizeof *p->site.span);
	p->seen = vn_alloc((size_t)p->site.plan->n_nodes, sizeof *p->seen);
	find_points(p);
	const vn_status st = vn_blas_prepare(p->threads, err);
	if (st) {
		vn_recompute_destroy(p);
		*made = NULL;
	}
	return st;
}

void vn_recompute_destroy(vn_recompute *p)
{
	if (!p)
		return;
	forget_checkpoint(p);
	vn_names_finish(&p->names);
	for (int i = 0; i < VN_N_WIDTHS; i++)
		free(p->w[i].unmodified);
	VN_FREE(p->point, p->site.span, p->seen, p);
}
