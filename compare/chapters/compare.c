/* compare.c: see compare.h. */
#include "compare/chapters/by_itself.h"
#include "compare/chapters/chapters.h"
#include "compare/chapters/compare.h"
#include "compare/chapters/digests.h"
#include "compare/chapters/notes.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/baseline.h"
#include "compare/judge/count.h"
#include "compare/judge/judge_left_out.h"
#include "compare/judge/localise.h"
#include "compare/judge/pool_channels.h"
#include "compare/judge/pooled_logits.h"
#include "compare/judge/pooled_small.h"
#include "compare/match/batch.h"
#include "compare/match/match.h"
#include "compare/match/trusted.h"
#include "compare/profile/misshapen.h"
#include "compare/replay/by_operation.h"
#include "compare/replay/replay.h"
#include "compare/replay/replay_routing.h"
#include "compare/replay/routing.h"
#include "compare/replayed/replayed.h"
#include "compare/weights/weights.h"

#include <stdlib.h>

/* ---- the chapters, in their order ---------------------------------------------------- */

/* One of two functions. A failure of `run` ends the comparison. */
typedef struct chapter {
	vn_status (*run)(vn_comparison *c, vn_error *err);
	void (*infallible)(vn_comparison *c);
} chapter;

/* Before the numbers are read. */
static const chapter begin[] = {
	{ .infallible = vn_chapter_begin },
	/* contract, align */
	{ .run = vn_chapter_contract },
	{ .run = vn_chapter_check_inputs },
	{ .run = vn_chapter_align },
	/* match */
	{ .run = vn_replayed_begin },
	{ .run = vn_match },
	{ .run = vn_judge_left_out },
	{ .run = vn_match_names },
	{ .infallible = vn_match_count_neither },
	{ .infallible = vn_match_find_gaps },
	{ .infallible = vn_note_few_tokens },
	{ .infallible = vn_trust_digests },
	{ .infallible = vn_judge_set_hidden },
};

/* After the numbers were measured. */
static const chapter end[] = {
	{ .run = vn_chapter_check_digests },
	{ .run = vn_match_find_vacuous },
	/* pools, floor */
	{ .run = vn_pool_channels },
	{ .run = vn_chapter_measure_floor },
	{ .infallible = vn_pool_logits },
	{ .infallible = vn_pool_small },
	/* judge */
	{ .infallible = vn_note_masks },
	{ .infallible = vn_note_part },
	{ .infallible = vn_chapter_judge },
	{ .run = vn_tell_misshapen },
	{ .run = vn_chapter_find_overwritten },
	/* replay, localise, explain */
	{ .run = vn_replay_run },
	{ .run = vn_replayed_run },
	{ .infallible = vn_replay_judge_operations },
	{ .run = vn_replayed_forgive },
	{ .infallible = vn_routing_note },
	{ .run = vn_replay_routing },
	{ .run = vn_baseline_apply },
	{ .infallible = vn_localise },
	{ .run = vn_replay_origins },
	{ .run = vn_chapter_explain },
	/* each recording by itself */
	{ .run = vn_chapter_check_alone },
	{ .run = vn_chapter_check_echo },
	{ .run = vn_chapter_check_garbage },
	{ .run = vn_chapter_check_digests_of_all },
};

/* clang-format off */
/* From what all of these found. */
static const chapter verdict[] = {
	{ .infallible = vn_digests_warn },
	{ .infallible = vn_judge_demand_not_run },
	{ .infallible = vn_warn_unused_rules },
	{ .infallible = vn_chapter_count },
	{ .run = vn_chapter_require_judged },
	{ .infallible = vn_chapter_conclude },
};

/* Of a recording whose counterpart does not exist. */
static const chapter alone[] = {
	{ .infallible = vn_chapter_begin },
	{ .infallible = vn_chapter_warn_alone },
	{ .run = vn_match },
	{ .run = vn_baseline_apply },
	{ .infallible = vn_chapter_count },
	{ .infallible = vn_chapter_conclude },
};
/* clang-format on */

static vn_status run_chapters(vn_comparison *c, const chapter *of, size_t n, vn_error *err)
{
	vn_status st = VN_OK;

	for (size_t i = 0; i < n && !st; i++)
		if (of[i].infallible)
			of[i].infallible(c);
		else
			st = of[i].run(c, err);
	return st;
}

/* A digest that does not match is noted where it is found; the comparison is refused here. */
static vn_status refuse_damage(vn_comparison *c, vn_status st, vn_error *err)
{
	return st == VN_ERR_DAMAGED ? vn_digests_refuse(c, err) : st;
}

vn_status vn_compare_begin(vn_comparison *c, vn_error *err)
{
	return refuse_damage(c, run_chapters(c, begin, sizeof begin / sizeof *begin, err), err);
}

vn_status vn_compare_end(vn_comparison *c, vn_error *err)
{
	const vn_status st = refuse_damage(c, run_chapters(c, end, sizeof end / sizeof *end, err), err);
	return st ? st : run_chapters(c, verdict, sizeof verdict / sizeof *verdict, err);
}

vn_status vn_compare_alone(vn_comparison *c, vn_error *err)
{
	return run_chapters(c, alone, sizeof alone / sizeof *alone, err);
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

/* ---- closing --------------------------------------------------------------------------- */

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
	for (int i = 0; i < c->result.n_pooled_small; i++)
		free(c->result.pooled_small[i].step);
	free(c->result.pooled_small);
	free(c->result.channel_pool);
	free(c->result.origins);
	if (c->result.explainer)
		c->result.explainer->free(c->result.why);
	vn_model_close(c->opened.model);
	vn_weights_free(c->result.weights);
	vn_localise_drop_graph(&c->result);
	vn_replayed_free(c->result.judged);
	vn_lines_free(&c->result.notes);
	vn_lines_free(&c->result.warnings);
	vn_lines_free(&c->result.refusals);
}

void vn_comparison_close(vn_comparison *c)
{
	vn_comparison_finish(c);
	vn_limits_destroy(c->request.limits);
	vn_replayed_file_close(c->opened.replayed);
	vn_recording_close(c->opened.floor);
	vn_recording_close(c->opened.cand);
	vn_recording_close(c->opened.ref);
}
