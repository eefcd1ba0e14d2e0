/* replay.c: see replay.h. Two engines walk the plan node by node (replay_node.c). This file creates
 * them, chooses the steps, and draws the conclusions. */
#include "compare/replay/replay_captured.h"
#include "compare/replay/replay_columns.h"
#include "compare/replay/replay_made.h"
#include "compare/replay/replay_node.h"
#include "compare/replay/replay_state.h"
#include "compare/comparison/checkpoint.h"
#include "compare/match/contract.h"
#include "compare/replay/overflow.h"
#include "compare/replay/replay.h"

#include "libref/base/progress.h"

#include <math.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- one step -------------------------------------------------------------------------------- */

static void find_points(vn_replay *r)
{
	const vn_comparison *c = r->c;
	for (int v = 0; v < r->plan->n_values; v++) {
		r->point[v] = -1;
		r->want[v] = r->last[v] = false;
		r->error[v] = (double)NAN;
	}
	for (int i = 0; i < c->result.n_checkpoints; i++) {
		const int root = c->result.checkpoint[i].step == r->step->number && c->result.checkpoint[i].m.n
		                     ? vn_names_root(&r->names, c->result.checkpoint[i].name)
		                     : -1;
		if (root < 0 || (r->point[root] >= 0 && c->result.checkpoint[r->point[root]].status == VN_OUTSIDE))
			continue;
		r->point[root] = i; /* if a value has two names, the one outside counts */
		r->want[root] = true;
		r->last[root] = vn_entry_last_alone(vn_recording_entry(c->opened.cand, c->result.checkpoint[i].cand),
		                                    r->step->rows);
	}
}

static vn_status one_step(vn_replay *r, vn_error *err)
{
	const int32_t *ids;
	const vn_step *s = r->step;
	const int64_t  first = s->position + s->first_row;
	vn_taps        taps[VN_N_ENGINES];
	vn_status      st = VN_OK;

	vn_recording_tokens(r->c->opened.cand, &ids, NULL);
	find_points(r);
	for (int i = 0; !st && i < VN_N_ENGINES; i++) {
		taps[i] = (vn_taps) { .want = r->want,
			                  .rows = VN_ROWS_RANGE,
			                  .first = first,
			                  .last = first + s->rows - 1,
			                  .sink = vn_replay_sink(&r->e[i]) };
		st = vn_ref_ops.begin(r->e[i].ref, ids + s->position, s->tokens, &taps[i], err);
	}
	for (int k = 0; !st && k < r->plan->n_nodes; k++)
		st = vn_replay_node(r, k, err);
	for (int i = 0; i < VN_N_ENGINES; i++)
		vn_ref_ops.end(r->e[i].ref, !st, NULL);
	vn_replay_forget(r);
	return st;
}

/* ---- origins --------------------------------------------------------------------------------- */

/* The local errors are known, so the graph is not needed: an origin may have a wrong input. */
vn_status vn_replay_origins(vn_comparison *c, vn_error *err)
{
	int             n = 0;
	const vn_status st = vn_replay_find_overflows(c, err);
	if (st || !c->result.replayed)
		return st;
	int *list = malloc(((size_t)c->result.n_checkpoints + 1) * sizeof *list);
	if (!list)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for origins");
	for (int i = 0; i < c->result.n_checkpoints; i++) {
		vn_checkpoint *p = &c->result.checkpoint[i];
		/* A checkpoint that could not be replayed keeps the result of the graph. */
		p->origin = p->replayed ? (vn_local_beyond(p) && p->replay.charged_to < 0) || p->overflow.reached > 0
		                        : p->origin;
		p->origin = p->origin || (p->overwritten && p->fails);
		p->origin = p->origin && (p->fails || !c->request.options->baseline); /* not origins that the baseline knows */
		if (p->origin)
			list[n++] = i;
	}
	free(c->result.origins);
	c->result.origins = list;
	c->result.n_origins = n;
	return VN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool follows_step(const vn_comparison *c, const vn_step *s, int64_t position)
{
	const int32_t *at;
	const int64_t  n = vn_recording_tokens(c->opened.cand, NULL, &at);
	int64_t        by;

	vn_positions_moved(c, &by);
	if (s->position != position || s->tokens <= 0 || s->tokens > n - s->position)
		return false;
	for (int64_t t = s->position; t < s->position + s->tokens; t++)
		if (at[t] != t + by)
			return false;
	return true;
}

static vn_status open_engines(vn_replay *r, int steps, vn_error *err)
{
	const vn_model *m = r->c->opened.model;
	const size_t    n = (size_t)r->plan->n_values + 1;
	vn_status       st;

	r->want = malloc(n * sizeof *r->want);
	r->point = malloc(n * sizeof *r->point);
	r->error = malloc(n * sizeof *r->error);
	r->last = malloc(n * sizeof *r->last);
	if (!r->want || !r->point || !r->error || !r->last)
		return vn_fail(err, VN_ERR_NOMEM, "no memory to replay %d values", r->plan->n_values);
	if ((st = vn_names_init(&r->names, r->plan, err)) || (st = vn_trace_init(&r->trace, r->plan, steps, err)))
		return st;
	if ((st = vn_plan_clone(r->plan, &r->other, err)))
		return st;
	r->e[VN_REPLAY_OWN].policy = r->c->opened.policy;
	r->e[VN_REPLAY_FINE].policy = vn_policy_fine(r->c->opened.policy);
	for (int i = 0; !st && i < VN_N_ENGINES; i++) {
		r->e[i].last = r->last;
		const vn_ref_options o = { .policy = r->e[i].policy,
			                       .threads = r->c->request.options->threads,
			                       .progress = i == VN_REPLAY_OWN };
		st = vn_ref_create(i == VN_REPLAY_OWN ? r->other : r->plan, vn_model_weights(m), &o, &r->e[i].ref, err);
	}
	return st;
}

static void close_engines(vn_replay *r)
{
	for (int i = 0; i < VN_N_ENGINES; i++) {
		vn_ref_ops.destroy(r->e[i].ref);
		for (size_t k = 0; k < sizeof r->e[i].out / sizeof *r->e[i].out; k++)
			vn_node_output_free(&r->e[i].out[k]);
	}
	vn_plan_destroy(r->other);
	vn_names_finish(&r->names);
	vn_trace_finish(&r->trace);
	free(r->want);
	free(r->point);
	free(r->error);
	free(r->last);
	free(r->put);
}

static vn_status walk_steps(vn_replay *r, const vn_step *step, int steps, vn_error *err)
{
	int64_t     position = 0, by;
	vn_progress bar = { 0 };
	vn_status   st = VN_OK;

	if (!r->again && vn_positions_moved(r->c, &by))
		vn_lines_add(&r->c->result.notes,
		             "replay: the candidate's positions are the reference's %+" PRId64
		             "; operations are recomputed at the reference's positions",
		             by);
	vn_progress_start(&bar, "replaying step", steps);
	for (int i = 0; !st && i < steps; i++) {
		if (!follows_step(r->c, &step[i], position)) {
			if (!r->again)
				vn_lines_add(
					&r->c->result.notes,
					"replay: step %d does not start where the step before it ended: this step and later ones are not "
					"replayed",
					step[i].number);
			break;
		}
		r->step = &step[i];
		r->at = i;
		position += step[i].tokens;
		st = one_step(r, err);
		r->c->result.replayed = true;
		vn_progress_at(&bar, i + 1);
	}
	vn_progress_stop(&bar);
	return st;
}

static bool any_fails(const vn_comparison *c)
{
	for (int i = 0; i < c->result.n_checkpoints; i++)
		if (c->result.checkpoint[i].fails)
			return true;
	return false;
}

static bool is_wanted(const vn_comparison *c)
{
	switch (c->request.options->replay) {
	case VN_REPLAY_NEVER: return false;
	case VN_REPLAY_ALWAYS: return true;
	case VN_REPLAY_SAME: return any_fails(c) || !vn_other_weights(c);
	default: return any_fails(c);
	}
}

vn_status vn_replay_run(vn_comparison *c, vn_error *err)
{
	vn_column_order assumed[VN_N_POINTS] = { VN_COLUMNS_SAME };
	vn_replay       r;
	const vn_step  *step;
	const int       steps = vn_recording_steps(c->opened.cand, &step);
	bool            again = false;
	vn_status       st;

	if (!c->opened.model || !is_wanted(c))
		return VN_OK;
	do {
		r = (vn_replay) { .c = c, .plan = vn_model_plan(c->opened.model), .again = again };
		memcpy(r.assumed, assumed, sizeof assumed);
		if (!(st = open_engines(&r, steps, err)))
			st = walk_steps(&r, step, steps, err);
		again = !st && vn_replay_columns_again(&r, assumed);
		close_engines(&r);
	} while (again);
	/* The comparison stands without it. */
	if (st && !vn_status_ends_job(st)) {
		vn_lines_add(&c->result.warnings, "replay stopped before the end: %s", err->text);
		st = VN_OK;
	}
	return st ? vn_context(err, st, "replay") : VN_OK;
}
