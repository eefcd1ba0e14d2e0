/* compare.c: see compare.h. */
#include "compare/chapters/by_itself.h"
#include "compare/chapters/chapters.h"
#include "compare/chapters/compare.h"
#include "compare/chapters/notes.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/baseline.h"
#include "compare/judge/count.h"
#include "compare/judge/judge_left_out.h"
#include "compare/judge/localise.h"
#include "compare/judge/pool_channels.h"
#include "compare/judge/pooled_small.h"
#include "compare/match/align.h"
#include "compare/match/batch.h"
#include "compare/match/contract.h"
#include "compare/match/match.h"
#include "compare/match/trusted.h"
#include "compare/profile/misshapen.h"
#include "compare/replay/by_operation.h"
#include "compare/replay/replay.h"
#include "compare/replay/routing.h"
#include "compare/replayed/replayed.h"
#include "compare/weights/weights.h"

#include <stdlib.h>

/* ---- the chapters, in their order ---------------------------------------------------- */

/* Before the numbers are read. */
static vn_status begin(vn_comparison *c, vn_error *err)
{
	const vn_opened *o = &c->opened;
	vn_result       *r = &c->result;
	vn_status        st;

	vn_chapter_begin(c);
	/* contract, align */
	if ((st = vn_contract(o, &r->remarks, o->cand, "candidate", &r->weights, err)) ||
	    (st = vn_chapter_check_inputs(c, err)) ||
	    (st = vn_align(o->ref, &r->remarks.notes, o->cand, "candidate", true, err)))
		return st;
	/* match */
	if ((st = vn_replayed_begin(o, &r->remarks, err)) || (st = vn_match(o, &r->checkpoints, &r->remarks.notes, err)) ||
	    (st = vn_judge_left_out(o, &r->checkpoints, &r->unpaired, &r->remarks, err)) ||
	    (st = vn_match_names(o, &r->checkpoints, &r->unpaired, &r->remarks.notes, err)))
		return st;
	vn_match_count_neither(o, &r->checkpoints, &r->unpaired);
	vn_match_find_gaps(o, &r->checkpoints, &r->remarks.warnings);
	vn_note_few_tokens(o, &r->remarks.notes);
	vn_trust_digests(o, &r->checkpoints, &r->remarks);
	vn_judge_set_hidden(o, &r->pools);
	return VN_OK;
}

/* After the numbers were measured. */
static vn_status end(vn_comparison *c, vn_error *err)
{
	const vn_opened *o = &c->opened;
	vn_result       *r = &c->result;
	vn_status        st;

	if ((st = vn_digests_check(o, &r->digests, &r->remarks.refusals, 2, err)) ||
	    (st = vn_match_find_vacuous(o, &r->checkpoints, err)))
		return st;
	/* pools, floor */
	if ((st = vn_pool_channels(o, &r->checkpoints, &r->pools, err)) || (st = vn_chapter_measure_floor(c, err)))
		return st;
	vn_pool_logits(o, &r->checkpoints, &r->pools);
	vn_pool_small(o, &r->checkpoints, &r->pools);
	/* judge */
	vn_note_masks(&r->checkpoints, &r->remarks.notes);
	vn_note_part(o, &r->checkpoints, &r->remarks.notes);
	vn_chapter_judge(o, &r->checkpoints, &r->pools, &r->remarks.warnings);
	if ((st = vn_tell_misshapen(o, &r->checkpoints, err)) ||
	    (st = vn_chapter_find_overwritten(o, &r->checkpoints, err)))
		return st;
	/* replay, baseline */
	if ((st = vn_replay_run(o, r->weights, &r->checkpoints, &r->replayed, &r->remarks, err)) ||
	    (st = vn_replayed_run(o, &r->checkpoints, &r->floor, &r->remarks.notes, &r->judged, err)))
		return st;
	if (o->request.only_local)
		return VN_OK;
	r->replayed = r->replayed || r->judged;
	vn_replay_judge_operations(o, r->weights, &r->checkpoints, &r->pools, r->replayed);
	vn_replayed_forgive(o, &r->checkpoints, &r->pools, r->judged);
	vn_routing_note(o, &r->checkpoints, &r->remarks.notes);
	if ((st = vn_replay_routing(o, &r->checkpoints, &r->routing, &r->remarks.notes, err)) ||
	    (st = vn_baseline_apply(o, &r->checkpoints, &r->pools, r->n_since, err)))
		return st;
	/* localise, explain */
	vn_localise(o, &r->checkpoints, &r->pools, &r->localised, &r->remarks.warnings);
	if ((st = vn_replay_origins(o, &r->checkpoints, r->replayed, &r->localised, err)) ||
	    (st = vn_chapter_explain(c, err)))
		return st;
	/* each recording by itself */
	if ((st = vn_chapter_check_alone(o, &r->checkpoints, &r->localised, &r->remarks.warnings, err)) ||
	    (st = vn_chapter_check_echo(o, &r->checkpoints, &r->remarks.warnings, err)) ||
	    (st = vn_chapter_check_garbage(o, &r->checkpoints, &r->remarks, err)))
		return st;
	return vn_digests_check(o, &r->digests, &r->remarks.refusals, 3, err);
}

/* From what all of these found. */
static vn_status verdict(vn_comparison *c, vn_error *err)
{
	vn_result *r = &c->result;

	vn_digests_warn(&c->opened, &r->remarks.warnings);
	vn_judge_demand_not_run(&c->opened, &r->checkpoints, &r->unpaired);
	vn_warn_unused_rules(&c->opened, &r->remarks.warnings);
	vn_chapter_count(&r->checkpoints, &r->verdict);
	const vn_status st = vn_chapter_require_judged(&c->opened, &r->verdict, err);
	if (!st)
		vn_chapter_conclude(&c->opened, &r->remarks.warnings, &r->verdict);
	return st;
}

/* A digest that does not match is noted where it is found; the comparison is refused here. */
static vn_status refuse_damage(vn_comparison *c, vn_status st, vn_error *err)
{
	return st == VN_ERR_DAMAGED ? vn_digests_refuse(&c->opened, &c->result.remarks.refusals, err) : st;
}

vn_status vn_compare_begin(vn_comparison *c, vn_error *err)
{
	return refuse_damage(c, begin(c, err), err);
}

vn_status vn_compare_end(vn_comparison *c, vn_error *err)
{
	const vn_status st = refuse_damage(c, end(c, err), err);
	return st ? st : verdict(c, err);
}

vn_status vn_compare_alone(vn_comparison *c, vn_error *err)
{
	const vn_opened *o = &c->opened;
	vn_result       *r = &c->result;
	vn_status        st;

	vn_chapter_begin(c);
	vn_chapter_warn_alone(o, &r->remarks.warnings);
	if ((st = vn_match(o, &r->checkpoints, &r->remarks.notes, err)) ||
	    (st = vn_baseline_apply(o, &r->checkpoints, &r->pools, r->n_since, err)))
		return st;
	vn_chapter_count(&r->checkpoints, &r->verdict);
	vn_chapter_conclude(o, &r->remarks.warnings, &r->verdict);
	return VN_OK;
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

/* ---- measuring ---------------------------------------------------------------------- */

static int candidate_of(const vn_opened *o, const vn_checkpoint *p)
{
	(void)o;
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

void vn_compare_measure(vn_comparison *const *c, int n, vn_status *st, vn_error *why)
{
	vn_measuring m[VN_COMPARE_TOGETHER] = { { 0 } };

	for (int i = 0; i < n; i++)
		m[i] = (vn_measuring) { .o = &c[i]->opened,
			                    .all = &c[i]->result.checkpoints,
			                    .batch = { c[i]->opened.cand, candidate_of, set_measured, set_unreadable } };
	vn_measure_together(m, n);
	for (int i = 0; i < n; i++) {
		why[i] = m[i].why;
		st[i] = refuse_damage(c[i], m[i].st, &why[i]);
	}
}

/* ---- closing --------------------------------------------------------------------------- */

void vn_comparison_finish(vn_comparison *c)
{
	vn_result *r = &c->result;

	for (int i = 0; i < r->checkpoints.n; i++) {
		VN_FREE(r->checkpoints.of[i].check, r->checkpoints.of[i].detail, r->checkpoints.of[i].contents,
		        r->checkpoints.of[i].floor);
	}
	free(r->checkpoints.of);
	vn_terms_free(&r->checkpoints.terms);
	free(r->pools.pooled_logits);
	for (int i = 0; i < r->pools.n_pooled_small; i++)
		free(r->pools.pooled_small[i].step);
	VN_FREE(r->pools.pooled_small, r->pools.channel_pool, r->localised.origins);
	if (r->explainer)
		r->explainer->free(r->why);
	vn_model_close(c->opened.model);
	vn_weights_free(r->weights);
	vn_localise_drop_graph(&r->localised);
	vn_replayed_free(r->judged);
	vn_lines_free(&r->remarks.notes);
	vn_lines_free(&r->remarks.warnings);
	vn_lines_free(&r->remarks.refusals);
}

void vn_comparison_close(vn_comparison *c)
{
	vn_comparison_finish(c);
	vn_limits_destroy(c->opened.request.limits);
	vn_replayed_file_close(c->opened.replayed);
	vn_recording_close(c->opened.floor);
	vn_recording_close(c->opened.cand);
	vn_recording_close(c->opened.ref);
}
