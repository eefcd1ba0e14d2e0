/* compare.c: see compare.h. */
#include "compare/judge/count.h"
#include "compare/chapters/by_itself.h"
#include "compare/chapters/compare.h"
#include "compare/chapters/digests.h"
#include "compare/chapters/notes.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/floor/floor.h"
#include "compare/floor/precision.h"
#include "compare/judge/pooled_small.h"
#include "compare/judge/judge.h"
#include "compare/judge/left_out.h"
#include "compare/judge/localise.h"
#include "compare/judge/pooled_logits.h"
#include "compare/match/align.h"
#include "compare/match/batch.h"
#include "compare/match/contract.h"
#include "compare/match/match.h"
#include "compare/match/trusted.h"
#include "compare/profile/misshapen.h"
#include "compare/weights/weights.h"
#include "compare/judge/baseline.h"
#include "compare/judge/pool_channels.h"
#include "compare/replay/by_operation.h"
#include "compare/replay/replay.h"

#include <stdlib.h>
#include <string.h>

/* ---- measuring the candidate ------------------------------------------------ */

static int candidate_of(vn_comparison *c, const vn_checkpoint *p)
{
	(void)c;
	return p->fails || p->ref < 0 || p->status == VN_EQUAL ? -1 : p->cand;
}

static void set_measured(vn_checkpoint *p, const vn_measured *m)
{
	p->m = *m;
}

static void set_unreadable(vn_checkpoint *p, const char *why)
{
	p->status = VN_UNREADABLE;
	p->fails = true;
	vn_checkpoint_say(p, "%s", why);
}
/* ---- the verdict -------------------------------------------------------------------- */

static void count_statuses(vn_comparison *c)
{
	for (int i = 0; i < c->result.n_checkpoints; i++) {
		c->result.n_status[c->result.checkpoint[i].status]++;
		c->result.n_fails += c->result.checkpoint[i].fails;
	}
}

static void judge_all(vn_comparison *c)
{
	c->result.strict = c->request.options->strict && c->result.n_fails == 0 && c->result.warnings.n;
	c->result.within = c->result.n_fails == 0 && !c->result.strict;
}

static vn_status sum_up(vn_comparison *c, vn_error *err)
{
	vn_judge_demand_not_run(c);
	count_statuses(c);
	vn_warn_unused_rules(c);
	/* Fails the comparison when every checkpoint is missing by permission: at least one must
	 * have been judged. */
	if (c->result.n_fails == 0 && c->result.n_status[VN_WITHIN] + c->result.n_status[VN_OUTSIDE] +
	                                      c->result.n_status[VN_ACCUMULATED] + c->result.n_status[VN_AGREED] +
	                                      c->result.n_status[VN_EQUAL] ==
	                                  0)
		return c->result.n_status[VN_UNLIMITED]
		           ? vn_fail(err, VN_ERR_USAGE, "%s sets no limit for any of the %d checkpoints",
		                     c->request.limits->path, c->result.n_status[VN_UNLIMITED])
		           : vn_fail(err, VN_ERR_MISMATCH, "%s and %s have no checkpoint in common",
		                     vn_recording_path(c->opened.ref), vn_recording_path(c->opened.cand));
	judge_all(c);
	return VN_OK;
}

/* ---- helpers of single chapters ----------------------------------------------------- */

static vn_status run_explain(vn_comparison *c, vn_error *err)
{
	const vn_explainer *by = c->result.explainer = c->request.options->explain;
	const vn_status     st = by ? by->explain(c, &c->result.why, err) : VN_OK;
	return st ? vn_context(err, st, "explain") : VN_OK;
}

/* Number of layers for limits that depend on depth: from the plan, or else from both recordings. */
static int layers_of(const vn_comparison *c)
{
	const int ref = vn_recording_layers(c->opened.ref), cand = vn_recording_layers(c->opened.cand);
	return c->opened.plan ? c->opened.plan->layers : ref > cand ? ref : cand;
}

/* Checks what the files hold besides tensors. */
static vn_status check_inputs(vn_comparison *c, vn_error *err)
{
	static const char *const who[] = { "reference", "candidate", "floor" };
	vn_recording            *r[] = { c->opened.ref, c->opened.cand, c->opened.floor };
	vn_status                st = vn_match_check_steps(c, err);
	for (int i = 0; i < 3 && r[i] && !st; i++) {
		vn_warn_unread(c, who[i], r[i]);
		st = vn_floor_check_precision(c, who[i], r[i], err);
	}
	if (!st)
		vn_warn_swapped(c);
	if (!st && c->result.refusals.n)
		st = vn_fail(err, VN_ERR_MISMATCH, "%s and %s are not comparable", vn_recording_path(c->opened.ref),
		             vn_recording_path(c->opened.cand));
	return st;
}

static void begin_result(vn_comparison *c)
{
	c->opened.plan = vn_recording_plan(c->opened.ref) ? vn_recording_plan(c->opened.ref)
	                                                  : vn_recording_plan(c->opened.cand);
	c->result.first = c->result.first_invalid_floor = -1;
	c->request.limits->layers = layers_of(c);
	c->result.bits = vn_limits_mention(c->request.limits, VN_M_DIFFERING);
	for (int i = 0; i < c->request.limits->n_warnings; i++)
		vn_lines_add(&c->result.warnings, "%s", c->request.limits->warning[i]);
}

/* The digests of a floor's file are checked while it is measured, so the reasons to refuse its
 * numbers come second. */
static vn_status floor_of(vn_comparison *c, vn_error *err)
{
	vn_status st = c->opened.floor             ? vn_floor_of_file(c, err)
	               : c->request.options->model ? vn_replay_floor_run(c, err)
	                                           : VN_OK;
	vn_error  why = { "" };
	vn_status damaged = c->opened.floor && !vn_status_ends_job(st) ? vn_digests_check(c, 3, &why) : VN_OK;
	if (damaged && err)
		*err = why;
	st = damaged ? damaged : st;
	if (!st)
		vn_floor_finish(c);
	return st;
}

/* A factor that breaks its limit makes the judge read the numbers again. Judging in batches bounds
 * the memory that these reads take. */
enum { JUDGED_AT_ONCE = 1024 };

static vn_status judge_points(vn_comparison *c, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; i < c->result.n_checkpoints && !st; i++) {
		if (c->result.checkpoint[i].m.n)
			st = vn_judge(c, &c->result.checkpoint[i], err);
		if (i % JUDGED_AT_ONCE == JUDGED_AT_ONCE - 1)
			vn_comparison_forget(c);
	}
	vn_comparison_forget(c);
	return st;
}

/* A digest that does not match is noted where it is found; the comparison is refused here. */
static vn_status refuse_damage(vn_comparison *c, vn_status st, vn_error *err)
{
	return st == VN_ERR_DAMAGED ? vn_digests_refuse(c, err) : st;
}

/* ---- the chapters, in their order ---------------------------------------------------- */

/* Runs the chapters before the numbers are read. */
static vn_status match_checkpoints(vn_comparison *c, vn_error *err)
{
	vn_status st;

	if ((st = vn_contract(c->opened.ref, c->opened.cand, "candidate", c->request.options, &c->result.weights,
	                      &c->result.notes, &c->result.refusals, err)) ||
	    (st = check_inputs(c, err)) || (st = vn_align(c, c->opened.cand, "candidate", err)) ||
	    (st = vn_match(c, err)) || (st = vn_judge_left_out(c, err)) || (st = vn_match_names(c, err)) ||
	    (st = vn_match_count_neither(c, err)))
		return st;
	vn_note_few_tokens(c);
	if (vn_trusts(c))
		vn_trust_digests(c);
	c->result.hidden = vn_judge_count_hidden(c);
	return VN_OK;
}

vn_status vn_compare_begin(vn_comparison *c, vn_error *err)
{
	begin_result(c);
	return refuse_damage(c, match_checkpoints(c, err), err);
}

void vn_compare_measure(vn_comparison *const *c, int n, vn_status *st, vn_error *why)
{
	vn_measuring m[VN_COMPARE_TOGETHER] = { { 0 } };

	for (int i = 0; i < n; i++)
		m[i] = (vn_measuring) {
			c[i], { c[i]->opened.cand, candidate_of, set_measured, set_unreadable }, VN_OK, { "" }
		};
	vn_measure_together(m, n);
	for (int i = 0; i < n; i++) {
		why[i] = m[i].why;
		st[i] = refuse_damage(c[i], m[i].st, &why[i]);
	}
}

/* Runs the chapters after measuring, except those that need the final result. */
static vn_status judge_checkpoints(vn_comparison *c, vn_error *err)
{
	vn_status st;

	if ((st = vn_digests_check(c, 2, err)) || (st = vn_match_find_vacuous(c, err)) || (st = vn_pool_channels(c, err)) ||
	    (st = floor_of(c, err)) || (st = vn_pool_logits(c, err)) || (st = vn_pool_small(c, err)))
		return st;
	vn_note_masks(c);
	vn_note_part(c);
	if ((st = judge_points(c, err)) || (st = vn_tell_misshapen(c, err)) || (st = vn_chapter_find_overwritten(c, err)) ||
	    (st = vn_replay_run(c, err)) || (st = vn_replay_judge_operations(c, err)) || (st = vn_baseline_apply(c, err)) ||
	    (st = vn_localise(c, err)) || (st = vn_replay_origins(c, err)) || (st = run_explain(c, err)) ||
	    (st = vn_chapter_check_alone(c, err)) || (st = vn_chapter_check_echo(c, err)) ||
	    (st = vn_chapter_check_garbage(c, err)))
		return st;
	return vn_digests_check(c, 3, err);
}

vn_status vn_compare_end(vn_comparison *c, vn_error *err)
{
	const vn_status st = refuse_damage(c, judge_checkpoints(c, err), err);
	if (st)
		return st;
	vn_digests_warn(c);
	return sum_up(c, err);
}

vn_status vn_compare(vn_comparison *c, vn_error *err)
{
	vn_error  why;
	vn_status st = vn_compare_begin(c, err);

	if (st)
		return st;
	vn_compare_measure(&c, 1, &st, &why);
	if (st && err)
		*err = why;
	return st ? st : vn_compare_end(c, err);
}

vn_status vn_compare_alone(vn_comparison *c, vn_error *err)
{
	const bool missing = vn_recording_count(c->opened.cand) == 0;
	vn_status  st;

	begin_result(c);
	vn_lines_add(&c->result.warnings, "the %s does not exist (%s): nothing was compared",
	             missing ? "candidate" : "reference", vn_recording_path(missing ? c->opened.cand : c->opened.ref));
	if ((st = vn_match(c, err)) || (st = vn_baseline_apply(c, err)))
		return st;
	count_statuses(c);
	judge_all(c);
	return VN_OK;
}

/* ---- opening and closing ------------------------------------------------------------ */

vn_status vn_comparison_open(vn_comparison *c, const char *ref, const char *cand, const char *floor, vn_error *err)
{
	const char *const path[] = { ref, cand, floor };
	vn_recording     *r[3] = { NULL };
	const vn_status   st = vn_recording_open_all(path, floor ? 3 : 2, r, err);

	c->opened.ref = r[0];
	c->opened.cand = r[1];
	c->opened.floor = r[2];
	for (int i = 0; i < 3 && !st; i++)
		if (r[i]) {
			vn_comparison_allow(c, r[i]);
			if (!vn_trusts(c))
				vn_recording_drop_stats(r[i]);
		}
	return st;
}

void vn_comparison_finish(vn_comparison *c)
{
	for (int i = 0; i < c->result.n_checkpoints; i++) {
		free(c->result.checkpoint[i].check);
		free(c->result.checkpoint[i].detail);
		free(c->result.checkpoint[i].contents);
		free(c->result.checkpoint[i].floor);
	}
	free(c->result.checkpoint);
	vn_terms_free(&c->result.terms);
	free(c->result.pooled_logits);
	for (int i = 0; i < c->result.n_pooled_small; i++) {
		free(c->result.pooled_small[i].nmse);
		free(c->result.pooled_small[i].below);
	}
	free(c->result.pooled_small);
	free(c->result.channel_pool);
	free(c->result.origins);
	if (c->result.explainer)
		c->result.explainer->free(c->result.why);
	vn_model_close(c->opened.model);
	vn_weights_free(c->result.weights);
	vn_comparison_drop_graph(c);
	vn_lines_free(&c->result.notes);
	vn_lines_free(&c->result.warnings);
	vn_lines_free(&c->result.refusals);
}

void vn_comparison_close(vn_comparison *c)
{
	vn_comparison_finish(c);
	vn_limits_destroy(c->request.limits);
	vn_recording_close(c->opened.floor);
	vn_recording_close(c->opened.cand);
	vn_recording_close(c->opened.ref);
}
