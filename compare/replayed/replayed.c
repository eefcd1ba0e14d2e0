/* replayed.c: see replayed.h. */
#include "compare/replayed/replayed.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/pool_channels.h"
#include "compare/replayed/judge_results.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- before the pairing ---------------------------------------------------------------------- */

/* Are two inputs the same numbers? The reference may have them in a finer format. */
static vn_status same_numbers(const vn_opened *o, int ref, int cand, bool *same, vn_error *err)
{
	vn_tensor a, b;
	vn_status st = vn_entry_tensor(o->ref, ref, &a, err);

	*same = false;
	if (!st && !(st = vn_entry_tensor(o->cand, cand, &b, err)) && vn_shape_equal(&a.shape, &b.shape)) {
		*same = true;
		for (int64_t i = 0, n = vn_shape_count(&a.shape); *same && i < n; i++) {
			const double x = vn_tensor_number(&a, i), y = vn_tensor_number(&b, i);
			*same = x == y || (isnan(x) && isnan(y));
		}
	}
	vn_recording_release(o->ref, ref);
	vn_recording_release(o->cand, cand);
	return st;
}

/* The inputs of a run, not its token ids alone, are what two runs must share. */
static vn_status check_inputs(const vn_opened *o, vn_remarks *remarks, vn_error *err)
{
	const int n = vn_recording_count(o->cand);
	vn_status st = VN_OK;

	for (int i = 0; i < n && !st; i++) {
		const vn_entry *e = vn_recording_entry(o->cand, i);
		const int       ref = vn_replayed_is_input(e->name) ? vn_recording_find(o->ref, e->step, e->name) : -1;
		bool            same = true;
		if (ref >= 0 && !(st = same_numbers(o, ref, i, &same, err)) && !same)
			vn_remarks_refuse(o, remarks, VN_ALLOW_TOKEN_IDS, "token_ids",
			                  "inputs: %s of step %d differs: run both on the same inputs", e->name, e->step);
	}
	if (!st && remarks->refusals.n)
		st = vn_fail(err, VN_ERR_MISMATCH, "%s and %s are not comparable", vn_recording_path(o->ref),
		             vn_recording_path(o->cand));
	return st;
}

vn_status vn_replayed_begin(const vn_opened *o, vn_remarks *remarks, vn_error *err)
{
	vn_status st = VN_OK;

	if (vn_recording_run_plan(o->ref) || vn_recording_run_plan(o->cand))
		st = check_inputs(o, remarks, err);
	return st || !o->replayed ? st : vn_replayed_pair(o->replayed, o->ref, o->cand, err);
}

/* ---- judging --------------------------------------------------------------------------------- */

int vn_replayed_result_of(const vn_opened *o, const vn_checkpoint *p)
{
	const vn_entry *e = o->replayed && p->cand >= 0 ? vn_recording_entry(o->cand, p->cand) : NULL;
	return e ? vn_replayed_find(o->replayed, e->step, e->name) : -1;
}

void vn_replayed_free(vn_replayed_findings *j)
{
	if (j)
		free(j->of);
	free(j);
}

static vn_replayed_findings *make_judgement(const vn_opened *o, const vn_checkpoints *all)
{
	const int             n = o->replayed->n;
	vn_replayed_findings *j = vn_alloc_zero(1, sizeof *j);

	j->of = vn_alloc_zero((size_t)n, sizeof *j->of);
	j->n = n;
	for (int i = 0; i < n; i++)
		j->of[i].checkpoint = -1;
	for (int i = 0; i < all->n; i++) {
		const int of = vn_replayed_result_of(o, &all->of[i]);
		if (of >= 0)
			j->of[of].checkpoint = i;
	}
	return j;
}

vn_status vn_replayed_run(const vn_opened *o, vn_checkpoints *all, vn_floor_result *found, vn_lines *notes,
                          vn_replayed_findings **judged, vn_error *err)
{
	vn_status st;

	if (!o->replayed)
		return VN_OK;
	*judged = make_judgement(o, all);
	if ((st = vn_replayed_measure(o, all, *judged, err)))
		return vn_context(err, st, "--replayed");
	vn_replayed_conclude(o, all, *judged);
	vn_replayed_say(o, all, notes, *judged);
	snprintf(found->from, sizeof found->from, "of each operation (column local), by %.150s",
	         vn_recording_shown(o->replayed->recording));
	return VN_OK;
}

/* ---- error that only accumulated ------------------------------------------------------------- */

/* May this check fail although each operation is right? The replay judges all numbers of a result,
 * infinities and constants too, so that any check may: masks hold the least number of another
 * format. A limit of a person's stands. */
static bool may_accumulate(const vn_check *k)
{
	return k->form != VN_OF_OPERATION && (!k->rule || k->rule->shipped);
}

static bool only_accumulated(const vn_opened *o, const vn_checkpoint *p)
{
	vn_limit_set set;

	if (p->status != VN_OUTSIDE || !p->fails || p->invalid_floor)
		return false;
	if (!p->replayed && !vn_replayed_is_input(p->name))
		return false;
	for (int i = 0; i < p->n_checks; i++) {
		const vn_check k = vn_check_at(p, i);
		if (!k.holds && !may_accumulate(&k))
			return false;
	}
	vn_limits_for(o->request.limits, p->name, &set);
	return !set.permission[VN_PERMIT_ACCUMULATED];
}

/* Returns the place of the first wrong operation in the reference's order; INT_MAX: none. */
static int first_wrong(const vn_replayed_findings *j)
{
	for (int i = 0; i < j->n; i++)
		if (j->of[i].wrong)
			return i;
	return INT32_MAX;
}

void vn_replayed_forgive(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, const vn_replayed_findings *j)
{
	if (!j)
		return;
	const int first = first_wrong(j);
	for (int i = 0; i < all->n; i++) {
		vn_checkpoint *p = &all->of[i];
		if (vn_replayed_result_of(o, p) >= first || !only_accumulated(o, p))
			continue;
		p->status = p->vacuous ? VN_WITHIN : VN_ACCUMULATED;
		p->fails = false;
		if (p->pooled_small >= 0)
			pools->pooled_small[p->pooled_small].outside = false;
		if (p->channels >= 0)
			pools->channel_pool[p->channels].outside = false;
	}
}
