/* replay.c: see replay.h. Two engines walk the plan node by node. This file creates
 * them, chooses the steps, and draws the conclusions. */
#include "compare/comparison/checkpoint.h"
#include "compare/match/contract.h"
#include "compare/replay/draws.h"
#include "compare/replay/overflow.h"
#include "compare/replay/pool_steps.h"
#include "compare/replay/settle.h"

#include "libref/base/alloc.h"
#include "libref/base/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static vn_status measure_all(vn_replay *r, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; !st && i < r->e[VN_REPLAY_OWN].n_out; i++) {
		const vn_node_output *m = &r->e[VN_REPLAY_OWN].out[i];
		vn_checkpoint        *p = r->point[m->value];
		if (!p || !vn_replay_made(&r->e[VN_REPLAY_FINE], m->value) ||
		    !vn_shape_equal(&m->t.shape, &vn_recording_entry(r->o->ref, p->ref)->shape) ||
		    !vn_shape_equal(&m->t.shape, &vn_recording_entry(r->o->cand, p->cand)->shape))
			continue;
		int span, charged;
		vn_trace_span(&r->trace, r->at, m->value, &span, &charged);
		p->replay.span = span;
		if ((st = vn_replay_measure(r, m, VN_COLUMNS_SAME, p, err)))
			break;
		p->replay.charged_to = charged;
		vn_draws_pool(r, m->value, &p->replay);
		if (!vn_local_beyond(p))
			p->replay.charged_to = -1;
		vn_opened_was_read(r->o, p); /* the mapped pages of the recordings must not add up beside the weights */
	}
	return st;
}

/* A checkpoint that is this many times nearer to the reference than to what its captured inputs
 * give was not computed from these inputs, if it is within its limits, or if an operation before
 * these inputs is wrong, whose error it has. */
#define NEARER 16.0

/* Is q's error another checkpoint's? Steps share the operations that made the cache, so the same
 * checkpoint of an earlier step may have been charged for q. */
static bool is_charged_elsewhere(const vn_replay *r, const vn_checkpoint *q)
{
	const vn_checkpoint *to = q->replay.charged_to < 0 ? NULL : &r->all->of[q->replay.charged_to];
	return to && !(to->step < q->step && strcmp(to->name, q->name) == 0);
}

/* Returns the first wrong input of the span that was walked last. *n: number of wrong inputs not
 * known to be wrong captures; *unknown: one of them. */
static vn_checkpoint *wrong_inputs(const vn_replay *r, vn_checkpoint **unknown, int *n)
{
	vn_checkpoint *first = NULL;
	*n = 0;
	*unknown = NULL;
	for (size_t i = 0; i < r->trace.n_span; i++) {
		const size_t   cell = r->trace.span[i], values = (size_t)r->plan->n_values;
		const vn_node *node = &r->plan->node[r->plan->value[cell % values].node];
		for (int k = 0; cell / values == (size_t)r->at && k < node->n_in; k++) {
			const int      value = vn_plan_root(r->plan, node->in[k]);
			vn_checkpoint *q = r->point[value];
			if (!q || !vn_trace_kept(&r->trace, r->at, value) || !q->fails || !vn_local_beyond(q) ||
			    is_charged_elsewhere(r, q))
				continue;
			const bool known = q->replay.recorder_fault || q->replay.charged_to >= 0;
			first = first ? first : q;
			*n += !known && q != *unknown;
			*unknown = known ? *unknown : q;
		}
	}
	return first;
}

/* Was the node run with this input corrected (replay_captured.c)? Then the result is known. */
static bool is_tested(const vn_replay *r, int k, const vn_checkpoint *input)
{
	for (int i = 0; i < r->n_saved; i++)
		if (r->saved[i].point == input && vn_replay_reads(r->plan, k, r->saved[i].value))
			return true;
	return false;
}

/* Is an operation of this step wrong before that of q, and not by its capture alone? */
static bool is_wrong_before(const vn_replay *r, const vn_checkpoint *q)
{
	for (int i = r->first[r->at]; i < r->first[r->at + 1]; i++) {
		const vn_checkpoint *p = r->in_step[i];
		if (p < q && p->fails && vn_local_beyond(p) && p->replay.charged_to < 0 && !p->replay.recorder_fault)
			return true;
	}
	return false;
}

/* Charges the node's error to its inputs: the run continued with other numbers than the captured
 * ones. Some operations in between were not captured, so the node cannot be run with corrected
 * inputs (replay_captured.c). */
static bool charge_inputs(const vn_replay *r, int k, vn_checkpoint *p)
{
	vn_checkpoint *unknown, *first;
	int            n;

	if (!(NEARER * p->m.value[VN_M_NMSE] <= p->replay.local) || !(first = wrong_inputs(r, &unknown, &n)) ||
	    (p->fails && !is_wrong_before(r, first)))
		return false;
	if (n == 1 && is_tested(r, k, unknown))
		return false;
	if (n == 1)
		unknown->replay.recorder_fault = true;
	p->replay.charged_to = first->replay.charged_to >= 0 ? first->replay.charged_to : (int)(first - r->all->of);
	return true;
}

static vn_status charge_node(vn_replay *r, int k, vn_error *err)
{
	vn_status st = VN_OK;
	int       span, charged;
	for (int i = 0; !st && i < r->e[VN_REPLAY_OWN].n_out; i++) {
		const int      value = r->e[VN_REPLAY_OWN].out[i].value;
		vn_checkpoint *p = r->point[value];
		if (!p || !vn_local_beyond(p) || p->replay.charged_to >= 0)
			continue;
		vn_trace_span(&r->trace, r->at, value, &span, &charged);
		p->replay.charged_to = charged; /* a checkpoint already charged with an operation of the span */
		if (charged >= 0 || charge_inputs(r, k, p))
			continue;
		vn_trace_charge(&r->trace, (int)(p - r->all->of));
		st = vn_local_is_order(p) ? VN_OK : vn_replay_save(r, k, value, err);
	}
	return st;
}

/* Restores judged values only: a value that is not judged must not hide the error of what reads
 * it. */
static vn_status put_back(vn_replay *r, int value, vn_error *err)
{
	const vn_checkpoint *p = r->point[value];

	r->error[value] = (double)NAN;
	if (!p || !p->replayed || vn_replay_no_place(r->plan, value))
		return VN_OK;
	r->error[value] = sqrt(p->m.value[VN_M_NMSE]);
	return vn_replay_take(r, value, p, err);
}

/* Handles node k of the step: runs it in both engines, judges it, and replaces its outputs by the
 * candidate's numbers. */
static vn_status replay_node(vn_replay *r, int k, vn_error *err)
{
	const vn_node *node = &r->plan->node[k];
	vn_status      st;
	if ((st = vn_replay_run_node(r, k, err)) || (st = vn_draws_node(r, k, err)) || (st = measure_all(r, err)) ||
	    (st = vn_replay_columns(r, k, err)) || (st = vn_replay_overwritten(r, k, err)) ||
	    (st = vn_replay_captured(r, k, err)) || (st = charge_node(r, k, err)))
		return st;
	for (int i = 0; !st && i < node->n_out; i++)
		if (node->out[i] >= 0)
			st = put_back(r, node->out[i], err);
	return st ? st : vn_settle_node(r, k, err);
}

/* ---- one step -------------------------------------------------------------------------------- */

/* Lists the checkpoints of each step: there may be a thousand steps. */
static void list_checkpoints(vn_replay *r, const vn_step *step, int steps)
{
	const int      n = r->all->n;
	vn_checkpoint *p = r->all->of;
	int           *filled = vn_alloc_zero((size_t)steps + 2, sizeof *filled);

	r->in_step = vn_alloc((size_t)n, sizeof(vn_checkpoint *));
	r->first = filled;
	for (int i = 0; i < n; i++) {
		const vn_step *s = vn_recording_step(r->o->cand, p[i].step);
		filled[s ? s - step + 2 : 0] += s != NULL;
	}
	for (int i = 2; i <= steps + 1; i++)
		filled[i] += filled[i - 1];
	/* each step is filled from where the one before ends, up to where the next begins */
	for (int i = 0; i < n; i++) {
		const vn_step *s = vn_recording_step(r->o->cand, p[i].step);
		if (s)
			r->in_step[filled[s - step + 1]++] = &p[i];
	}
}

static void find_points(vn_replay *r)
{
	for (int v = 0; v < r->plan->n_values; v++) {
		r->point[v] = NULL;
		r->want[v] = r->last[v] = false;
		r->error[v] = (double)NAN;
	}
	for (int i = r->first[r->at]; i < r->first[r->at + 1]; i++) {
		vn_checkpoint *p = r->in_step[i];
		const int      root = p->m.n ? vn_names_root(&r->names, p->name) : -1;
		if (root < 0 || (r->point[root] && r->point[root]->status == VN_OUTSIDE))
			continue;
		r->point[root] = p; /* if a value has two names, the one outside counts */
		r->want[root] = true;
		r->last[root] = vn_entry_last_alone(vn_recording_entry(r->o->cand, p->cand), r->step->rows);
	}
}

static vn_status one_step(vn_replay *r, vn_error *err)
{
	const int32_t *ids;
	vn_status      st = VN_OK;

	vn_recording_tokens(r->o->cand, &ids, NULL);
	find_points(r);
	st = vn_settle_step(r, ids, err);
	for (int i = 0; !st && i < VN_N_ENGINES; i++)
		st = vn_replay_engine_begin(&r->e[i], r->step, ids, r->want, err);
	st = st ? st : vn_draws_begin(r, ids, err);
	for (int k = 0; !st && k < r->plan->n_nodes; k++)
		st = replay_node(r, k, err);
	for (int i = 0; i < VN_N_ENGINES; i++)
		vn_ref_ops.end(r->e[i].ref, !st, NULL);
	vn_draws_end(r, !st);
	vn_replay_forget(r);
	return st;
}

/* ---- origins --------------------------------------------------------------------------------- */

/* The wrong operations of one step, while its checkpoints are looked at. */
typedef struct wrong_step {
	const vn_plan *plan; /* NULL: the candidate's run has none */
	int            step;
	bool          *wrong, *seen; /* (values) */
} wrong_step;

/* Was the value computed from that of a wrong operation? */
static bool is_behind_wrong(wrong_step *s, int value)
{
	const int node = s->plan->value[value].node;
	bool      behind = false;

	if (node < 0 || s->seen[value])
		return false;
	s->seen[value] = true;
	for (int i = 0; !behind && i < s->plan->node[node].n_in; i++) {
		const int in = vn_plan_root(s->plan, s->plan->node[node].in[i]);
		behind = s->wrong[in] || is_behind_wrong(s, in);
	}
	return behind;
}

/* Was the origin p only captured wrongly, behind a wrong operation of its step? */
static bool is_set_aside(wrong_step *s, const vn_checkpoint *p)
{
	const size_t values = s->plan ? (size_t)s->plan->n_values : 0;

	if (p->step != s->step)
		memset(s->wrong, 0, values * sizeof *s->wrong);
	s->step = p->step;
	if (!s->plan || p->value < 0)
		return false;
	const int value = vn_plan_root(s->plan, p->value);
	if (!p->replay.recorder_fault) {
		s->wrong[value] = s->wrong[value] || (p->fails && !vn_local_is_order(p));
		return false;
	}
	memset(s->seen, 0, values * sizeof *s->seen);
	return is_behind_wrong(s, value);
}

/* The local errors are known, so the graph is not needed: an origin may have a wrong input. */
vn_status vn_replay_origins(const vn_opened *o, vn_checkpoints *all, bool replayed, vn_localised *localised,
                            vn_error *err)
{
	int             n = 0, captured = 0;
	const vn_status st = vn_replay_find_overflows(o, all, localised, err);
	if (st || !replayed)
		return st;
	int         *list = vn_alloc((size_t)all->n, sizeof *list), *aside = vn_alloc((size_t)all->n, sizeof *aside);
	const size_t values = o->plan ? (size_t)o->plan->n_values : 0; /* without a plan, nothing is set aside */
	wrong_step   s = { o->plan, -1, vn_alloc_zero(values, sizeof *s.wrong), vn_alloc_zero(values, sizeof *s.seen) };
	for (int i = 0; i < all->n; i++) {
		vn_checkpoint *p = &all->of[i];
		/* A checkpoint that could not be replayed keeps the result of the graph. */
		p->origin = p->replayed ? (vn_local_beyond(p) && p->replay.charged_to < 0) || p->overflow.reached > 0
		                        : p->origin;
		p->origin = p->origin || (p->overwritten && p->fails);
		p->origin = p->origin && (p->fails || !o->request.options->baseline); /* not origins that the baseline knows */
		if (!p->origin)
			continue;
		p->origin = !is_set_aside(&s, p);
		if (p->origin)
			list[n++] = i;
		else
			aside[captured++] = i;
	}
	memcpy(list + n, aside, (size_t)captured * sizeof *list);
	VN_FREE(aside, s.wrong, s.seen);
	localised->n_origins = n;
	localised->n_captured = captured;
	free(localised->origins);
	localised->origins = list;
	return VN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static vn_status open_engines(vn_replay *r, const vn_step *step, int steps, vn_error *err)
{
	const size_t n = (size_t)r->plan->n_values;
	vn_status    st;

	r->want = vn_alloc(n, sizeof *r->want);
	r->point = vn_alloc(n, sizeof *r->point);
	r->error = vn_alloc(n, sizeof *r->error);
	r->last = vn_alloc(n, sizeof *r->last);
	list_checkpoints(r, step, steps);
	vn_names_init(&r->names, r->plan);
	if ((st = vn_trace_init(&r->trace, r->plan, steps, err)) || (st = vn_plan_clone(r->plan, &r->other, err)))
		return st;
	r->e[VN_REPLAY_OWN].policy = r->o->policy;
	r->e[VN_REPLAY_OWN].keeps = true;
	r->e[VN_REPLAY_FINE].policy = vn_policy_fine(r->o->policy);
	for (int i = 0; !st && i < VN_N_ENGINES; i++) {
		r->e[i].last = r->last;
		const vn_ref_options o = { .policy = r->e[i].policy,
			                       .threads = r->o->request.options->threads,
			                       .progress = i == VN_REPLAY_OWN,
			                       .need = vn_model_need,
			                       .need_ctx = r->o->model };
		st = vn_ref_create(i == VN_REPLAY_OWN ? r->other : r->plan, vn_model_weights(r->o->model), &o, &r->e[i].ref,
		                   err);
	}
	return st ? st : vn_draws_open(r, step, steps, err);
}

static void close_engines(vn_replay *r)
{
	for (int i = 0; i < VN_N_ENGINES; i++)
		vn_replay_engine_close(&r->e[i]);
	vn_draws_close(r);
	vn_settle_close(r);
	vn_plan_destroy(r->other);
	vn_names_finish(&r->names);
	vn_trace_finish(&r->trace);
	VN_FREE(r->want, r->point, r->error, r->last, r->put, r->in_step, r->first);
}

/* Adds to *farther the checkpoints of this step whose error is larger than the bound's. */
static bool is_beyond_bound(const vn_replay *r, int *farther)
{
	const vn_bound *b = r->o->request.bound;

	for (int i = r->first[r->at]; b && b->than->n == r->all->n && i < r->first[r->at + 1]; i++) {
		const vn_checkpoint *p = r->in_step[i];
		const int64_t        at = p - r->all->of;
		*farther += b->counts[at] && p->replayed && b->than->of[at].replay.local < p->replay.local;
	}
	return b && *farther > b->most;
}

static vn_status walk_steps(vn_replay *r, const vn_step *step, int steps, vn_error *err)
{
	int64_t                               position = 0, by;
	VN_ENDS(vn_progress_stop) vn_progress bar = { 0 };
	vn_status                             st = VN_OK;
	int                                   farther = 0;

	if (!r->again && vn_positions_moved(r->o, &by))
		vn_lines_add(r->notes,
		             "replay: the candidate's positions are the reference's %+" PRId64
		             "; operations are recomputed at the reference's positions",
		             by);
	vn_progress_start(&bar, "replaying step", steps);
	for (int i = 0; !st && i < steps; i++) {
		if (!vn_replay_step_follows(r->o, &step[i], position)) {
			if (!r->again)
				vn_lines_add(
					r->notes,
					"replay: step %d does not start where the step before it ended: this step and later ones are not "
					"replayed",
					step[i].number);
			break;
		}
		r->step = &step[i];
		r->at = i;
		position += step[i].tokens;
		st = one_step(r, err);
		r->walked = true;
		vn_progress_at(&bar, i + 1);
		if (is_beyond_bound(r, &farther))
			break;
	}
	return st;
}

static bool is_wanted(const vn_opened *o, const struct vn_weights *weights, const vn_checkpoints *all)
{
	const vn_replay_when when = o->request.options->replay;
	bool                 wanted = when == VN_REPLAY_ALWAYS || (when == VN_REPLAY_SAME && !vn_other_weights(weights));

	for (int i = 0; !wanted && when != VN_REPLAY_NEVER && i < all->n; i++)
		wanted = all->of[i].fails;
	return wanted;
}

/* How small a fault the checkpoint with the longest span can show, in the step that shows most. */
static void say_what_spans_show(const vn_checkpoints *all, vn_lines *notes)
{
	const vn_checkpoint *longest = NULL;
	char                 label[VN_LABEL], more[60] = "";
	int                  n = 0;

	for (int i = 0; i < all->n; i++) {
		const vn_checkpoint *p = &all->of[i];
		if (!p->replayed || !(p->replay.slack > 0) || p->replay.span <= VN_SPAN_CLEARED)
			continue;
		n++;
		longest = !longest || p->replay.span > longest->replay.span ? p : longest;
	}
	if (!longest)
		return;
	for (int i = 0; i < all->n; i++) {
		const vn_checkpoint *p = &all->of[i];
		if (p->replayed && p->replay.slack > 0 && strcmp(p->name, longest->name) == 0 &&
		    vn_local_least_seen(&p->replay) < vn_local_least_seen(&longest->replay))
			longest = p;
	}
	if (n > 1)
		snprintf(more, sizeof more, " (%d more checkpoint%s such gaps)", n - 1, n == 2 ? " has" : "s have");
	vn_lines_add(
		notes,
		"replay: %d operations before %s were not recorded%s; a fault in them shows if it changes this tensor by "
		"more than %.1e of its norm",
		longest->replay.span - 1, vn_label(longest, label), more, vn_local_least_seen(&longest->replay));
}

vn_status vn_replay_run(const vn_opened *o, const struct vn_weights *weights, vn_checkpoints *all, bool *replayed,
                        vn_remarks *remarks, vn_error *err)
{
	vn_column_order assumed[VN_N_POINTS] = { VN_COLUMNS_SAME };
	vn_replay       r;
	const vn_step  *step;
	const int       steps = vn_recording_steps(o->cand, &step);
	bool            again = false;
	vn_status       st;

	if (!o->model || !is_wanted(o, weights, all))
		return VN_OK;
	do {
		r = (vn_replay) {
			.o = o, .all = all, .notes = &remarks->notes, .plan = vn_model_plan(o->model), .again = again
		};
		memcpy(r.assumed, assumed, sizeof assumed);
		if (!(st = open_engines(&r, step, steps, err)))
			st = walk_steps(&r, step, steps, err);
		*replayed = *replayed || r.walked;
		again = !st && vn_replay_columns_again(&r, assumed);
		close_engines(&r);
	} while (again);
	if (!st) {
		vn_replay_pool_steps(o, all);
		say_what_spans_show(all, &remarks->notes);
	}
	/* The comparison stands without it. */
	if (st && !vn_status_ends_job(st)) {
		vn_lines_add(&remarks->warnings, "replay stopped before the end: %s", err->text);
		st = VN_OK;
	}
	return st ? vn_context(err, st, "replay") : VN_OK;
}
