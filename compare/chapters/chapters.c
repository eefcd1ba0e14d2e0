/* chapters.c: see chapters.h. */
#include "compare/chapters/chapters.h"
#include "compare/chapters/digests.h"
#include "compare/chapters/notes.h"
#include "compare/comparison/checkpoint.h"
#include "compare/floor/floor.h"
#include "compare/floor/precision.h"
#include "compare/judge/judge.h"
#include "compare/match/align.h"
#include "compare/match/contract.h"
#include "compare/replay/replay.h"

/* ---- before the numbers are read ----------------------------------------------------- */

/* Number of layers for limits that depend on depth: from the plan, or else from both recordings. */
static int layers_of(const vn_opened *o)
{
	const int ref = vn_recording_layers(o->ref), cand = vn_recording_layers(o->cand);
	return o->plan ? o->plan->layers : ref > cand ? ref : cand;
}

void vn_chapter_begin(vn_comparison *c)
{
	c->opened.plan = vn_recording_plan(c->opened.ref) ? vn_recording_plan(c->opened.ref)
	                                                  : vn_recording_plan(c->opened.cand);
	c->result.localised.first = c->result.floor.first_invalid = -1;
	c->opened.request.limits->layers = layers_of(&c->opened);
	for (int i = 0; i < c->opened.request.limits->warnings.n; i++)
		vn_lines_add(&c->result.remarks.warnings, "%s", c->opened.request.limits->warnings.line[i]);
}

void vn_chapter_warn_alone(vn_comparison *c)
{
	const bool missing = vn_recording_count(c->opened.cand) == 0;

	vn_lines_add(&c->result.remarks.warnings, "the %s does not exist (%s): nothing was compared",
	             missing ? "candidate" : "reference", vn_recording_path(missing ? c->opened.cand : c->opened.ref));
}

vn_status vn_chapter_contract(vn_comparison *c, vn_error *err)
{
	return vn_contract(&c->opened, &c->result.remarks, c->opened.cand, "candidate", &c->result.weights, err);
}

vn_status vn_chapter_check_inputs(vn_comparison *c, vn_error *err)
{
	static const char *const who[] = { "reference", "candidate", "floor" };
	vn_recording            *r[] = { c->opened.ref, c->opened.cand, c->opened.floor };
	vn_status                st = vn_match_check_steps(&c->opened, &c->result.remarks, err);
	for (int i = 0; i < 3 && r[i] && !st; i++) {
		vn_warn_unread(&c->result.remarks.warnings, who[i], r[i]);
		st = vn_floor_check_precision(&c->opened, &c->result.remarks, who[i], r[i], err);
	}
	if (!st)
		c->result.swapped = vn_warn_swapped(&c->opened, &c->result.remarks.warnings);
	if (!st && c->result.remarks.refusals.n)
		st = vn_fail(err, VN_ERR_MISMATCH, "%s and %s are not comparable", vn_recording_path(c->opened.ref),
		             vn_recording_path(c->opened.cand));
	return st;
}

vn_status vn_chapter_align(vn_comparison *c, vn_error *err)
{
	return vn_align(c->opened.ref, &c->result.remarks.notes, c->opened.cand, "candidate", true, err);
}

/* ---- after the numbers were measured -------------------------------------------------- */

vn_status vn_chapter_check_digests(vn_comparison *c, vn_error *err)
{
	return vn_digests_check(&c->opened, &c->result.digests, &c->result.remarks.refusals, 2, err);
}

vn_status vn_chapter_check_digests_of_all(vn_comparison *c, vn_error *err)
{
	return vn_digests_check(&c->opened, &c->result.digests, &c->result.remarks.refusals, 3, err);
}

/* The digests of a floor's file are checked while it is measured, so the reasons to refuse its
 * numbers come second. */
vn_status vn_chapter_measure_floor(vn_comparison *c, vn_error *err)
{
	vn_status st = c->opened.floor ? vn_floor_of_file(&c->opened, &c->result.checkpoints, &c->result.pools,
	                                                  &c->result.floor, &c->result.remarks, err)
	               : c->opened.request.options->model
	                   ? vn_replay_floor_run(&c->opened, &c->result.checkpoints, &c->result.pools, &c->result.floor,
	                                         &c->result.remarks, err)
	                   : VN_OK;
	vn_error  why = { "" };
	vn_status damaged = c->opened.floor && !vn_status_ends_job(st)
	                        ? vn_digests_check(&c->opened, &c->result.digests, &c->result.remarks.refusals, 3, &why)
	                        : VN_OK;
	if (damaged && err)
		*err = why;
	st = damaged ? damaged : st;
	if (!st)
		vn_floor_finish(&c->opened, &c->result.checkpoints, &c->result.floor, &c->result.remarks.warnings);
	return st;
}

/* A factor that breaks its limit makes the judge read the numbers again. Judging in batches bounds
 * the memory that these reads take. */
enum { JUDGED_AT_ONCE = 1024 };

void vn_chapter_judge(vn_comparison *c)
{
	for (int i = 0; i < c->result.checkpoints.n; i++) {
		if (c->result.checkpoints.of[i].m.n)
			vn_judge(&c->opened, &c->result.checkpoints, &c->result.pools, &c->result.remarks.warnings,
			         &c->result.checkpoints.of[i]);
		if (i % JUDGED_AT_ONCE == JUDGED_AT_ONCE - 1)
			vn_opened_forget(&c->opened);
	}
	vn_opened_forget(&c->opened);
}

vn_status vn_chapter_explain(vn_comparison *c, vn_error *err)
{
	const vn_explainer *by = c->result.explainer = c->opened.request.unexplained ? NULL
	                                                                             : c->opened.request.options->explain;
	const vn_status     st = by ? by->explain(&c->opened, &c->result, &c->result.why, err) : VN_OK;
	return st ? vn_context(err, st, "explain") : VN_OK;
}

/* ---- the verdict -------------------------------------------------------------------- */

void vn_chapter_count(vn_comparison *c)
{
	for (int i = 0; i < c->result.checkpoints.n; i++) {
		c->result.verdict.n_status[c->result.checkpoints.of[i].status]++;
		c->result.verdict.n_fails += c->result.checkpoints.of[i].fails;
	}
}

vn_status vn_chapter_require_judged(vn_comparison *c, vn_error *err)
{
	if (c->result.verdict.n_fails == 0 &&
	    c->result.verdict.n_status[VN_WITHIN] + c->result.verdict.n_status[VN_OUTSIDE] +
	            c->result.verdict.n_status[VN_ACCUMULATED] + c->result.verdict.n_status[VN_AGREED] +
	            c->result.verdict.n_status[VN_EQUAL] ==
	        0)
		return c->result.verdict.n_status[VN_UNLIMITED]
		           ? vn_fail(err, VN_ERR_USAGE, "%s sets no limit for any of the %d checkpoints",
		                     c->opened.request.limits->path, c->result.verdict.n_status[VN_UNLIMITED])
		           : vn_fail(err, VN_ERR_MISMATCH, "%s and %s have no checkpoint in common",
		                     vn_recording_path(c->opened.ref), vn_recording_path(c->opened.cand));
	return VN_OK;
}

void vn_chapter_conclude(vn_comparison *c)
{
	c->result.verdict.strict = c->opened.request.options->strict && c->result.verdict.n_fails == 0 &&
	                           c->result.remarks.warnings.n;
	c->result.verdict.within = c->result.verdict.n_fails == 0 && !c->result.verdict.strict;
}
