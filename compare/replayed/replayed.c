/* replayed.c: see replayed.h. */
#include "compare/replayed/replayed.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/pool_channels.h"
#include "compare/replayed/judge_results.h"

#include "libref/base/alloc.h"
#include "libref/base/intern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A wrong result, or a tensor in its region, which is charged with it. */
typedef struct charged_tensor {
	const char *name; /* kept */
	int         step, result;
} charged_tensor;

typedef struct charged_list {
	charged_tensor *of;
	size_t          n;
} charged_list;

/* Returns the name in "step.2/NAME" or "NAME", and sets *step if it says one. */
static const char *name_and_step(const json_t *text, int *step)
{
	const char *name = json_string_value(text);
	int         said, chars = 0;

	if (sscanf(name, "step.%d/%n", &said, &chars) != 1 || chars == 0)
		return name;
	*step = said;
	return name + chars;
}

static int find_charged(const charged_list *l, int step, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->of[i].step == step && strcmp(l->of[i].name, name) == 0)
			return l->of[i].result;
	return -1;
}

static void add_charged(charged_list *l, const char *name, int step, int result)
{
	l->of = vn_alloc_grown(l->of, l->n, sizeof *l->of);
	l->of[l->n++] = (charged_tensor) { vn_alloc_check(vn_intern(name)), step, result };
}

/* ---- the second round ------------------------------------------------------------------------ */

/* Is result i wrong if the wrong ones before it are computed, not taken? A result without numbers
 * of that round is as it was, or was itself taken out. */
static bool remains_wrong(const vn_replayed_file *f, const vn_replayed_findings *j, int i)
{
	return j->of[i].again ? j->of[i].wrong_again : j->of[i].wrong && vn_replayed_is_result(f->result[i].name);
}

/* Which results are still accused: those in the region of one that remains wrong, and that one if
 * it was wrong. accused: (n). */
static void accuse(const vn_replayed_file *f, const vn_replayed_findings *j, bool *accused)
{
	for (int i = 0; i < j->n; i++) {
		if (!remains_wrong(f, j, i))
			continue;
		json_t *line = vn_alloc_check(vn_replayed_line(f, i)), *region = vn_json_field(line, "again_region");
		accused[i] = j->of[i].wrong;
		for (int k = 0; !region && k < j->n; k++)
			accused[k] = true; /* any of them */
		for (size_t k = 0; k < json_array_size(region); k++) {
			int         step = f->result[i].step;
			const char *name = name_and_step(json_array_get(region, k), &step);
			const int   of = vn_replayed_find(f, step, name);
			if (of >= 0)
				accused[of] = true;
		}
		json_decref(line);
	}
}

static void clear_other_orders(const vn_opened *o, vn_checkpoints *all, vn_replayed_findings *j)
{
	VN_FREED bool *accused = vn_alloc_zero((size_t)j->n, sizeof *accused);

	accuse(o->replayed, j, accused);
	for (int i = 0; i < j->n; i++) {
		if (!j->of[i].wrong || accused[i])
			continue;
		all->of[j->of[i].checkpoint].replay.another_order = true;
		j->of[i].wrong = false;
	}
}

/* ---- regions --------------------------------------------------------------------------------- */

/* The root of the sum of the squared relative errors of what a region was given; NaN: not known. */
static double error_of_inputs(const vn_opened *o, const vn_checkpoints *all, const vn_replayed_findings *j, int step,
                              const json_t *reads)
{
	double sum = 0;
	int    known = 0;

	for (size_t i = 0; i < json_array_size(reads); i++) {
		int         at = step;
		const char *name = name_and_step(json_array_get(reads, i), &at);
		const int   of = vn_replayed_find(o->replayed, at, name);
		const int   p = of >= 0 ? j->of[of].checkpoint : -1;
		if (p < 0 || !all->of[p].m.n)
			continue;
		sum += all->of[p].m.value[VN_M_NMSE];
		known++;
	}
	return known ? sqrt(sum) : (double)NAN;
}

static void set_region(const vn_opened *o, vn_checkpoints *all, vn_replayed_findings *j, int i, charged_list *charged)
{
	const vn_judged_result *r = &o->replayed->result[i];
	vn_checkpoint          *p = &all->of[j->of[i].checkpoint];
	VN_OWNED json_t        *line = vn_alloc_check(vn_replayed_line(o->replayed, i));
	const json_t           *region = vn_json_field(line, "region");
	const double            in = error_of_inputs(o, all, j, r->step, vn_json_field(line, "reads"));

	p->replay.span = r->span ? r->span : 1 + (int)json_array_size(region);
	if (p->replay.span > VN_SPAN_CLEARED)
		p->replay.slack = vn_local_slack(p->replay.independent_numbers); /* its floor is measured */
	p->replay.gain = in > 0 ? sqrt(p->replay.inherited) / in : (double)NAN;
	for (size_t k = 0; j->of[i].wrong && k < json_array_size(region); k++) {
		int         step = r->step;
		const char *name = name_and_step(json_array_get(region, k), &step);
		const int   before = find_charged(charged, step, name);
		if (before >= 0 && p->replay.charged_to < 0)
			p->replay.charged_to = j->of[before].checkpoint;
	}
	for (size_t k = 0; j->of[i].wrong && p->replay.charged_to < 0 && k < json_array_size(region); k++) {
		int         step = r->step;
		const char *name = name_and_step(json_array_get(region, k), &step);
		add_charged(charged, name, step, i);
	}
	if (j->of[i].wrong && p->replay.charged_to < 0) /* where it was computed for others, not given to them */
		add_charged(charged, r->name, r->step, i);
}

/* Of wrong results: clears those of another order, and charges those whose regions overlap. */
static void conclude(const vn_opened *o, vn_checkpoints *all, vn_replayed_findings *j)
{
	charged_list charged = { 0 };

	if (o->replayed->again)
		clear_other_orders(o, all, j);
	for (int i = 0; i < j->n; i++)
		if (j->of[i].checkpoint >= 0)
			set_region(o, all, j, i, &charged);
	free(charged.of);
}

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
	conclude(o, all, *judged);
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
