/* routing.c: see routing.h. */
#include "compare/replay/routing.h"
#include "compare/floor/precision.h"
#include "compare/judge/choices.h"
#include "compare/replay/replay_state.h"

#include "libref/base/alloc.h"
#include "libref/exec/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* A measured checkpoint, and the value that it shows. */
typedef struct shown_value {
	int                  value, step;
	const vn_checkpoint *p;
} shown_value;

typedef struct routing_run {
	const vn_opened      *o;
	const vn_checkpoints *all;
	vn_names              names;
	vn_replay_engine      e;
	shown_value          *shown; /* (n_shown), by value and step */
	size_t                n_shown;
	bool                 *want;  /* (values): only the last checkpoint's */
	int                   value; /* that checkpoint's */
	int                   given; /* values that the candidate recorded */
	/* sums of squares over all steps: of the reference, the candidate's error and its two parts */
	double                size, together, routing, arithmetic;
} routing_run;

static int order_shown(const void *a, const void *b)
{
	const shown_value *x = a, *y = b;

	return x->value != y->value ? (x->value > y->value) - (x->value < y->value)
	                            : (x->step > y->step) - (x->step < y->step);
}

/* Lists the measured checkpoints of the plan's values. */
static void list_shown(routing_run *r)
{
	r->shown = vn_alloc((size_t)r->all->n + 1, sizeof *r->shown);
	for (int i = 0; i < r->all->n; i++) {
		const vn_checkpoint *p = &r->all->of[i];
		const int            root = p->m.n ? vn_names_root(&r->names, p->name) : -1;
		if (root >= 0)
			r->shown[r->n_shown++] = (shown_value) { root, p->step, p };
	}
	qsort(r->shown, r->n_shown, sizeof *r->shown, order_shown);
}

/* The measured checkpoint of a value in a step; NULL. */
static const vn_checkpoint *find_point(const routing_run *r, int step, int value)
{
	const shown_value  key = { value, step, NULL };
	const shown_value *found = bsearch(&key, r->shown, r->n_shown, sizeof key, order_shown);

	return found ? found->p : NULL;
}

/* Chooses the value that the plan makes last, of those that were compared. */
static bool choose_value(routing_run *r)
{
	int node = -1;

	for (size_t i = 0; i < r->n_shown; i++) {
		const int root = r->shown[i].value;
		if (r->names.plan->value[root].state < 0 && r->names.plan->value[root].node > node) {
			node = r->names.plan->value[root].node;
			r->value = root;
		}
	}
	if (node >= 0)
		r->want[r->value] = true;
	return node >= 0;
}

/* Puts what the candidate recorded into the run, if it has all rows of the step. */
static vn_status give_value(routing_run *r, const vn_step *step, int value, vn_error *err)
{
	const vn_value      *v = &r->names.plan->value[value];
	const vn_checkpoint *p = find_point(r, step->number, value);
	const vn_dtype       as = vn_policy_dtype(r->e.policy, vn_value_wide(r->names.plan, value));
	const vn_shape       whole = vn_value_shape(v, step->tokens, step->position + step->tokens);
	unsigned char       *own = NULL, *put = NULL;
	vn_tensor            t;
	vn_status            st = VN_OK;

	if (!p || (st = vn_replay_candidate(r->o, p, p->replay.columns, &t, &own, err)))
		return st;
	if (vn_shape_equal(&t.shape, &whole)) {
		const size_t n = (size_t)vn_shape_count(&whole);
		put = vn_alloc(n + 1, vn_dtype_size(as));
		vn_convert(put, as, t.data, t.dtype, n, r->o->request.options->threads);
		st = vn_ref_ops.write(r->e.ref, value, put, err);
		r->given += !st;
	}
	VN_FREE(put, own);
	vn_recording_release(r->o->cand, p->cand);
	return st;
}

static void add_errors(routing_run *r, const vn_tensor *ref, const vn_tensor *cand, const vn_tensor *run)
{
	const int64_t n = vn_shape_count(&ref->shape), skip = vn_shape_count(&run->shape) - n; /* the last rows */

	for (int64_t i = 0; skip >= 0 && i < n; i++) {
		const double a = vn_tensor_number(ref, i), b = vn_tensor_number(cand, i), x = vn_tensor_number(run, skip + i);
		r->size += a * a;
		r->together += (b - a) * (b - a);
		r->routing += (x - a) * (x - a);
		r->arithmetic += (b - x) * (b - x);
	}
}

static vn_status measure_run(routing_run *r, const vn_step *step, const vn_node_output *made, vn_error *err)
{
	const vn_checkpoint *p = find_point(r, step->number, r->value);
	unsigned char       *own = NULL;
	vn_tensor            ref, cand;
	vn_status            st;

	if (!p || (st = vn_entry_tensor(r->o->ref, p->ref, &ref, err)))
		return p ? st : VN_OK;
	if (!(st = vn_replay_candidate(r->o, p, p->replay.columns, &cand, &own, err))) {
		add_errors(r, &ref, &cand, &made->t);
		free(own);
		vn_recording_release(r->o->cand, p->cand);
	}
	vn_recording_release(r->o->ref, p->ref);
	return st;
}

static vn_status run_step(routing_run *r, const vn_step *step, const int32_t *ids, vn_error *err)
{
	const vn_plan *plan = r->names.plan;
	vn_status      st = vn_replay_engine_begin(&r->e, step, ids, r->want, err);

	for (int k = 0; !st && k < plan->n_nodes; k++) {
		const vn_node *n = &plan->node[k];
		r->e.n_out = 0;
		if ((st = vn_ref_ops.run(r->e.ref, k, k + 1, err)))
			break;
		if (n->op == VN_OP_TOP_K || n->op == VN_OP_ROUTE)
			st = give_value(r, step, n->out[0], err);
		const vn_node_output *made = vn_replay_made(&r->e, r->value);
		if (!st && made)
			st = measure_run(r, step, made, err);
	}
	vn_ref_ops.end(r->e.ref, !st, NULL);
	return st;
}

static vn_status run_steps(routing_run *r, vn_error *err)
{
	const int32_t *ids, *positions;
	const vn_step *step;
	const int      n = vn_recording_steps(r->o->ref, &step);
	vn_status      st = VN_OK;

	vn_recording_tokens(r->o->ref, &ids, &positions);
	for (int i = 0; !st && i < n; i++) {
		if (!vn_replay_step_follows(r->o, &step[i], vn_ref_ops.position(r->e.ref)))
			return vn_fail(err, VN_ERR_UNSUPPORTED,
			               "--replay-routing: step %d does not start where the step before it ended", step[i].number);
		st = run_step(r, &step[i], ids, err);
	}
	return st;
}

static void note_parts(const routing_run *r, vn_routing_parts *parts, vn_lines *notes)
{
	const vn_routing_parts p = { r->names.plan->value[r->value].name, r->routing / r->size, r->arithmetic / r->size,
		                         r->together / r->size };

	if (!r->given) {
		vn_lines_add(notes, "--replay-routing: the candidate recorded no router_ids or router_weights of all tokens");
		return;
	}
	*parts = p;
	vn_lines_add(notes,
	             "routing: the candidate's experts and weights alone change %s by nmse %.2e; its arithmetic "
	             "adds %.2e; together %.2e",
	             p.name, p.routing, p.arithmetic, p.together);
}

vn_status vn_replay_routing(const vn_opened *o, const vn_checkpoints *all, vn_routing_parts *parts, vn_lines *notes,
                            vn_error *err)
{
	routing_run r = { .o = o, .all = all };
	vn_status   st = VN_OK;

	if (!o->request.options->replay_routing || !o->model)
		return VN_OK;
	vn_names_init(&r.names, vn_model_plan(o->model));
	list_shown(&r);
	r.want = vn_alloc_zero((size_t)r.names.plan->n_values, sizeof *r.want);
	vn_policy_of_recording(o->ref, &r.e.policy);
	const vn_ref_options how = { .policy = r.e.policy,
		                         .threads = o->request.options->threads,
		                         .progress = true,
		                         .need = vn_model_need,
		                         .need_ctx = o->model };
	if (choose_value(&r) && !(st = vn_ref_create(r.names.plan, vn_model_weights(o->model), &how, &r.e.ref, err)) &&
	    !(st = run_steps(&r, err)))
		note_parts(&r, parts, notes);
	vn_replay_engine_close(&r.e);
	VN_FREE(r.want, r.shown);
	vn_names_finish(&r.names);
	return st;
}

/* Engines choose by the softmax in float32: two roundings of each exponential, which a difference
 * of scores multiplies. */
#define SOFTMAX 0x1p-22

/* The largest difference of two scores that rounding explains: each was rounded once or, where it
 * is not recorded, is the end of a product that rounding reaches from before. */
static double margin_of(const vn_tensor *scores, vn_dtype format, int span)
{
	enum { NOT_RECORDED = 8 };
	const int64_t n = vn_shape_count(&scores->shape);
	double        most = 0;

	for (int64_t i = 0; i < n; i++)
		most = fmax(most, fabs(vn_tensor_number(scores, i)));
	return SOFTMAX + (span > 1 ? NOT_RECORDED : 1) * 2 * ldexp(most, -vn_dtype_digits(format));
}

vn_status vn_routing_judge(vn_replay *r, const vn_node *node, const vn_tensor *own, const vn_tensor *cand,
                           const vn_tensor *ref, vn_replayed *l, vn_error *err)
{
	const int               from = vn_plan_root(r->plan, node->in[0]);
	const vn_replay_engine *e = &r->e[VN_REPLAY_OWN];
	vn_tensor    scores = { vn_policy_dtype(e->policy, vn_value_wide(r->plan, from)), vn_replay_shape(r, from), NULL };
	const size_t n = (size_t)vn_shape_count(&scores.shape);
	void        *data = malloc(n * vn_dtype_size(scores.dtype) + 1);
	vn_status    st = VN_OK;

	if (!data)
		return vn_fail(err, VN_ERR_NOMEM, "no memory to replay %s", r->plan->value[from].name);
	scores.data = data;
	/* a part of the rows was kept: then none is judged here */
	if (vn_shape_equal(&own->shape, &cand->shape) && !(st = vn_ref_ops.read(e->ref, from, data, err))) {
		const double margin = margin_of(&scores, e->policy.storage, l->span);
		vn_choice    x = { { cand, own }, { &scores, &scores }, margin };
		l->other_ids = vn_choices_sets(&x).other;
		x.ids[1] = ref;
		const vn_ids_found found = vn_choices_sets(&x);
		l->flips = found.other + found.ties;
	}
	free(data);
	return st;
}

void vn_routing_note(const vn_opened *o, const vn_checkpoints *points, vn_lines *notes)
{
	const vn_checkpoint *first = NULL;
	int64_t              flips = 0, other = 0, all = 0;

	for (int i = 0; i < points->n; i++) {
		const vn_checkpoint *p = &points->of[i];
		if (!p->replayed || p->value < 0 || o->plan->node[o->plan->value[p->value].node].op != VN_OP_TOP_K)
			continue;
		flips += p->replay.flips;
		other += p->replay.other_ids;
		all += p->m.n;
		first = first || !p->replay.flips ? first : p;
	}
	if (first)
		vn_lines_add(notes, "experts: %" PRId64 " of %" PRId64 " choices are not the reference's, the first in %s; %s",
		             flips, all, first->name,
		             other ? "where an origin is named, they do not follow from the candidate's own scores"
		                   : "each follows from the candidate's own scores, within their rounding: no fault");
}
