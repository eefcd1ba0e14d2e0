/* judge_left_out.c: see judge_left_out.h. */
#include "compare/judge/judge_left_out.h"

#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/check_words.h"
#include "compare/judge/judge.h"

#include "libref/base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool vn_judge_measured(const vn_opened *o, const vn_pools *pools, vn_lines *warnings, const vn_checkpoint *p,
                       char *words)
{
	vn_checkpoint  q = *p;
	vn_checkpoints own = { .of = &q, .n = 1 };
	vn_pools       alone = { .hidden = pools->hidden };

	q.cand = q.pooled_logits = q.pooled_small = q.channels = q.worst = -1;
	q.has_floor = q.invalid_floor = q.fails = false;
	q.vacuous = q.detail = NULL;
	q.floor = NULL;
	q.check = NULL;
	q.n_checks = 0;
	vn_judge(o, &own, &alone, warnings, &q);
	const bool holds = !q.fails && q.status != VN_UNLIMITED;
	*words = 0;
	if (q.worst >= 0) {
		const vn_check k = vn_check_at(&q, q.worst);
		vn_judge_say_check(&q, &k, words);
	} else if (!holds)
		snprintf(words, VN_WORDS, "no limit applies");
	vn_checks_drop(&q);
	vn_terms_free(&own.terms);
	return holds;
}

/* ---- one of them ------------------------------------------------------------------------ */

const vn_left_out *vn_left_out_of(const vn_opened *o, const vn_checkpoint *p)
{
	const vn_left_out *list;
	const int          n = vn_recording_left_out(o->cand, &list);
	const vn_left_out *l = vn_left_out_find(list, n, p->step, p->name);
	const int          first = vn_recording_entry(o->ref, p->ref)->same_as;

	if (!l && first >= 0)
		l = vn_left_out_find(list, n, p->step, vn_recording_entry(o->ref, first)->name);
	if (!l && o->plan && p->value >= 0)
		l = vn_left_out_find(list, n, p->step, o->plan->value[vn_plan_root(o->plan, p->value)].name);
	return l;
}

/* Was the tensor judged by the numbers that the reference has now? */
static bool same_reference(const vn_entry *e, const vn_left_out *l)
{
	return e->has_digest && !e->viewed && strcmp(vn_entry_digest(e).hex, l->reference.hex) == 0 &&
	       vn_shape_equal(&e->shape, &l->shape);
}

static void take_measured(const vn_entry *e, const vn_left_out *l, vn_measured *m)
{
	const double absmax = vn_left_out_measure(l, "absmax"), middle = vn_left_out_measure(l, "middle");

	*m = vn_measured_none();
	for (int i = 0; i < l->n; i++) {
		vn_metric which;
		if (!vn_metric_from_name(l->measure[i].name, &which))
			continue;
		m->has[which] = true;
		m->value[which] = l->measure[i].value;
	}
	m->n = m->finite = vn_shape_count(&l->shape);
	m->grid = vn_dtype_digits(e->dtype) < vn_dtype_digits(l->dtype) ? e->dtype : l->dtype;
	m->absmax[0] = isnan(absmax) ? 0 : absmax;
	m->middle = isnan(middle) ? 0 : middle;
}

/* Are the reference's numbers finite? A file may say of any tensor that it is equal. */
static vn_status is_finite(const vn_opened *o, const vn_checkpoint *p, bool *finite, vn_error *err)
{
	vn_tensor t;
	vn_status st = vn_entry_tensor(o->ref, p->ref, &t, err);

	if (!st) {
		const vn_stats s = vn_stats_of(t.data, t.dtype, (size_t)vn_shape_count(&t.shape));
		*finite = s.nan + s.inf == 0;
	}
	vn_recording_release(o->ref, p->ref);
	return st;
}

typedef struct tally {
	int    agreed, equal, partial;
	double nmse; /* the largest */
} tally;

/* If some metric was not measured, the nmse must tell how far the tensor is off. */
static vn_status judge_left_out(const vn_opened *o, vn_lines *warnings, vn_checkpoint *p, const vn_left_out *l,
                                tally *t, vn_error *err)
{
	static const vn_pools none;
	const vn_entry       *e = vn_recording_entry(o->ref, p->ref);
	const bool            equal = strcmp(l->digest.hex, l->reference.hex) == 0 && l->dtype == e->dtype;
	vn_measured           m;
	char                  words[VN_WORDS];
	bool                  holds = equal, partial = false;
	vn_status             st = VN_OK;

	take_measured(e, l, &m);
	for (int i = 0; i < VN_N_METRICS; i++)
		partial = partial || (!m.has[i] && i != VN_M_DIFFERING && (p->scores || !vn_metric_get((vn_metric)i)->scores));
	if (!equal && (!m.has[VN_M_NMSE] || !m.has[VN_M_NONFINITE] || (partial && p->scores))) {
		vn_checkpoint_say(p, "left out of the candidate, without a measured error");
		return VN_OK;
	}
	vn_checkpoint own = *p;
	own.m = m;
	own.partial_metrics = partial;
	if (!equal)
		holds = vn_judge_measured(o, &none, warnings, &own, words);
	else if ((st = is_finite(o, p, &holds, err)))
		return st;
	if (equal && !holds) {
		vn_checkpoint_say(p, "left out of the candidate, but the reference has numbers that are not finite");
		return VN_OK;
	}
	if (!holds) {
		vn_checkpoint_say(p, "left out of the candidate, but outside these limits: %s", words);
		return VN_OK;
	}
	p->status = VN_AGREED;
	p->fails = false;
	if (equal)
		vn_checkpoint_say(p, "left out: equal to the reference while it was recorded");
	else
		vn_checkpoint_say(p, "left out: judged while it was recorded, nmse %.3g", m.value[VN_M_NMSE]);
	t->agreed++;
	t->equal += equal;
	t->partial += !equal && partial;
	t->nmse = !equal && m.value[VN_M_NMSE] > t->nmse ? m.value[VN_M_NMSE] : t->nmse;
	return VN_OK;
}

/* ---- a run that stopped ------------------------------------------------------------------- */

/* "step.3/layer1.q_rope" or "layer1.q_rope" of the reference; -1: there is none. */
static int stopped_at(const vn_opened *o)
{
	const char *at = vn_facts_get(vn_recording_run(o->cand), "stopped");
	int         step = 0, end = 0;

	if (!at)
		return -1;
	if (sscanf(at, "step.%9d/%n", &step, &end) != 1 || end == 0)
		step = end = 0;
	return vn_recording_find(o->ref, step, at + end);
}

static bool comes_after(const vn_entry *e, const vn_entry *stop)
{
	return e->step != stop->step ? e->step > stop->step : e->order > stop->order;
}

void vn_judge_demand_not_run(const vn_opened *o, vn_checkpoints *all, const vn_unpaired *unpaired)
{
	for (int i = 0; i < all->n; i++)
		if (all->of[i].fails)
			return;
	for (int i = 0; i < all->n && unpaired->n_not_run; i++) {
		vn_checkpoint *p = &all->of[i];
		if (!p->not_run)
			continue;
		p->fails = true;
		vn_checkpoint_say(p, "not run: the recording stops at %s; " VN_RECORD_WHOLE,
		                  vn_facts_get(vn_recording_run(o->cand), "stopped"));
	}
}

/* ---- all of them --------------------------------------------------------------------------- */

static void note_tally(const vn_opened *o, const vn_unpaired *unpaired, vn_remarks *remarks, const tally *t)
{
	const vn_facts *run = vn_recording_run(o->cand);
	const char     *limits = vn_facts_get(run, "against_limits");
	vn_lines *to = o->request.options->strict && !(o->request.options->allow & VN_ALLOW_AGREED) ? &remarks->warnings
	                                                                                            : &remarks->notes;
	char      far[64] = "", partial[96] = "";

	if (t->agreed > t->equal)
		snprintf(far, sizeof far, "; nmse at most %.3g", t->nmse);
	if (t->partial)
		snprintf(partial, sizeof partial, "; of %d, not every metric was measured", t->partial);
	if (t->agreed)
		vn_lines_add(to,
		             "%d checkpoint%s agreed while the candidate was recorded and %s left out of it (limits %s%s%s): "
		             "the numbers cannot be checked here",
		             t->agreed, t->agreed == 1 ? "" : "s", t->agreed == 1 ? "was" : "were", limits ? limits : "unknown",
		             far, partial);
	if (unpaired->n_not_run)
		vn_lines_add(&remarks->notes, "the candidate's run was stopped at %s: %d checkpoint%s after it %s not run",
		             vn_facts_get(run, "stopped"), unpaired->n_not_run, unpaired->n_not_run == 1 ? "" : "s",
		             unpaired->n_not_run == 1 ? "was" : "were");
}

vn_status vn_judge_left_out(const vn_opened *o, vn_checkpoints *all, vn_unpaired *unpaired, vn_remarks *remarks,
                            vn_error *err)
{
	const vn_left_out *list;
	const int          n = vn_recording_left_out(o->cand, &list), stop = stopped_at(o);
	tally              t = { 0 };
	vn_status          st = VN_OK;

	if (n == 0 && stop < 0)
		return VN_OK;
	for (int i = 0; i < all->n; i++) {
		vn_checkpoint     *p = &all->of[i];
		const vn_entry    *e = !st && p->status == VN_MISSING ? vn_recording_entry(o->ref, p->ref) : NULL;
		const vn_left_out *l = e ? vn_left_out_of(o, p) : NULL;
		const bool         behind = !l && e && stop >= 0 && comes_after(e, vn_recording_entry(o->ref, stop));
		if (l && same_reference(e, l))
			st = judge_left_out(o, &remarks->warnings, p, l, &t, err);
		else if (l)
			vn_checkpoint_say(p, "left out of the candidate, which was judged by another reference");
		else if (behind) {
			vn_checkpoint_say(p, "not run: the recording stops at %s",
			                  vn_facts_get(vn_recording_run(o->cand), "stopped"));
			p->fails = false;
			p->not_run = true;
			unpaired->n_not_run++;
		}
	}
	if (!st)
		note_tally(o, unpaired, remarks, &t);
	return st;
}
