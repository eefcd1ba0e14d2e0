/* chapters.c: see chapters.h. */
#include "compare/chapters/chapters.h"
#include "compare/chapters/notes.h"
#include "compare/comparison/checkpoint.h"
#include "compare/floor/floor.h"
#include "compare/floor/precision.h"
#include "compare/judge/judge.h"
#include "compare/match/contract.h"
#include "compare/replay/replay.h"

enum { WRONG_NAMED = 8 };

typedef struct wrong {
	vn_lines *to;
	bool      allowed;
	int       n;
} wrong;

static void say_wrong(void *context, const char *words)
{
	wrong *w = context;
	if (w->n++ >= WRONG_NAMED)
		return;
	if (w->allowed)
		vn_lines_add(w->to, "allowed (digest): %s", words);
	else
		vn_lines_refuse(w->to, "digest", "%s", words);
}

static void tell_wrong(const vn_opened *o, wrong *w)
{
	const vn_recording *r[] = { o->ref, o->cand, o->floor };
	for (int i = 0; i < 3; i++)
		if (r[i])
			vn_recording_wrong(r[i], say_wrong, w);
	if (o->replayed)
		vn_recording_wrong(o->replayed->recording, say_wrong, w);
	if (w->n > WRONG_NAMED)
		vn_lines_add(w->to, "%s%d more tensors do not match their digests", w->allowed ? "allowed (digest): " : "",
		             w->n - WRONG_NAMED);
}

vn_status vn_digests_refuse(const vn_opened *o, vn_lines *refusals, vn_error *err)
{
	wrong w = { .to = refusals };
	tell_wrong(o, &w);
	return w.n ? vn_fail(err, VN_ERR_MISMATCH, "%s and %s are not comparable", vn_recording_path(o->ref),
	                     vn_recording_path(o->cand))
	           : VN_OK;
}

vn_status vn_digests_check(const vn_opened *o, vn_verified *digests, vn_lines *refusals, int n, vn_error *err)
{
	vn_recording *r[] = { o->ref, o->cand, o->floor };
	vn_status     st = VN_OK;
	*digests = (vn_verified) { 0 };
	for (int i = 0; i < n && !st; i++)
		if (r[i] && !(st = vn_recording_verify(r[i], err)))
			vn_recording_verified(r[i], digests);
	return st || !digests->wrong || (o->request.options->allow & VN_ALLOW_DIGEST) ? st
	                                                                              : vn_digests_refuse(o, refusals, err);
}

void vn_digests_warn(const vn_opened *o, vn_lines *warnings)
{
	wrong w = { .to = warnings, .allowed = true };
	tell_wrong(o, &w);
}

/* ---- before the numbers are read ----------------------------------------------------- */

/* Number of layers for limits that depend on depth, without a prediction head's: from the plan, or
 * else from both recordings. */
static int layers_of(const vn_opened *o)
{
	const int ref = vn_recording_layers(o->ref), cand = vn_recording_layers(o->cand);
	return o->plan ? vn_plan_last_layer(o->plan) + 1 : ref > cand ? ref : cand;
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

void vn_chapter_warn_alone(const vn_opened *o, vn_lines *warnings)
{
	const bool missing = vn_recording_count(o->cand) == 0;

	vn_lines_add(warnings, "the %s does not exist (%s): nothing was compared", missing ? "candidate" : "reference",
	             vn_recording_path(missing ? o->cand : o->ref));
}

vn_status vn_chapter_check_inputs(vn_comparison *c, vn_error *err)
{
	const vn_opened         *o = &c->opened;
	vn_remarks              *remarks = &c->result.remarks;
	static const char *const who[] = { "reference", "candidate", "floor" };
	vn_recording            *r[] = { o->ref, o->cand, o->floor };
	vn_status                st = VN_OK;
	vn_match_check_steps(o, remarks);
	for (int i = 0; i < 3 && r[i] && !st; i++) {
		vn_warn_unread(&remarks->warnings, who[i], r[i]);
		st = vn_floor_check_precision(o, remarks, who[i], r[i], err);
	}
	if (!st)
		c->result.swapped = vn_warn_swapped(o, &remarks->warnings);
	if (!st && remarks->refusals.n)
		st = vn_fail(err, VN_ERR_MISMATCH, "%s and %s are not comparable", vn_recording_path(o->ref),
		             vn_recording_path(o->cand));
	return st;
}

/* ---- after the numbers were measured -------------------------------------------------- */

/* The digests of a floor's file are checked while it is measured, so the reasons to refuse its
 * numbers come second. */
vn_status vn_chapter_measure_floor(vn_comparison *c, vn_error *err)
{
	vn_opened *o = &c->opened;
	vn_result *r = &c->result;
	vn_status  st = o->floor ? vn_floor_of_file(o, &r->checkpoints, &r->pools, &r->floor, &r->remarks, err)
	                : o->request.options->model
	                    ? vn_replay_floor_run(o, &r->checkpoints, &r->pools, &r->floor, &r->remarks, err)
	                    : VN_OK;
	vn_error   why = { "" };
	vn_status  damaged = o->floor && !vn_status_ends_job(st)
	                         ? vn_digests_check(o, &r->digests, &r->remarks.refusals, 3, &why)
	                         : VN_OK;
	if (damaged && err)
		*err = why;
	st = damaged ? damaged : st;
	if (!st)
		vn_floor_finish(o, &r->checkpoints, &r->floor, &r->remarks.warnings);
	return st;
}

/* A factor that breaks its limit makes the judge read the numbers again. Judging in batches bounds
 * the memory that these reads take. */
enum { JUDGED_AT_ONCE = 1024 };

void vn_chapter_judge(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, vn_lines *warnings)
{
	for (int i = 0; i < all->n; i++) {
		if (all->of[i].m.n)
			vn_judge(o, all, pools, warnings, &all->of[i]);
		if (i % JUDGED_AT_ONCE == JUDGED_AT_ONCE - 1)
			vn_opened_forget(o);
	}
	vn_opened_forget(o);
}

vn_status vn_chapter_explain(vn_comparison *c, vn_error *err)
{
	const vn_explainer *by = c->result.explainer = c->opened.request.unexplained ? NULL
	                                                                             : c->opened.request.options->explain;
	const vn_status     st = by ? by->explain(&c->opened, &c->result, &c->result.why, err) : VN_OK;
	return st ? vn_context(err, st, "explain") : VN_OK;
}

/* ---- the verdict -------------------------------------------------------------------- */

void vn_chapter_count(const vn_checkpoints *all, vn_conclusion *verdict)
{
	for (int i = 0; i < all->n; i++) {
		verdict->n_status[all->of[i].status]++;
		verdict->n_fails += all->of[i].fails;
	}
}

vn_status vn_chapter_require_judged(const vn_opened *o, const vn_conclusion *verdict, vn_error *err)
{
	if (verdict->n_fails == 0 && verdict->n_status[VN_WITHIN] + verdict->n_status[VN_OUTSIDE] +
	                                     verdict->n_status[VN_ACCUMULATED] + verdict->n_status[VN_AGREED] +
	                                     verdict->n_status[VN_EQUAL] ==
	                                 0)
		return verdict->n_status[VN_UNLIMITED]
		           ? vn_fail(err, VN_ERR_USAGE, "%s sets no limit for any of the %d checkpoints",
		                     o->request.limits->path, verdict->n_status[VN_UNLIMITED])
		           : vn_fail(err, VN_ERR_MISMATCH, "%s and %s have no checkpoint in common", vn_recording_path(o->ref),
		                     vn_recording_path(o->cand));
	return VN_OK;
}

void vn_chapter_conclude(const vn_opened *o, const vn_lines *warnings, vn_conclusion *verdict)
{
	verdict->strict = o->request.options->strict && verdict->n_fails == 0 && warnings->n;
	verdict->within = verdict->n_fails == 0 && !verdict->strict;
}
