/* by_operation.c: see by_operation.h. */
#include "compare/replay/by_operation.h"
#include "compare/comparison/checks.h"
#include "compare/judge/pool_channels.h"
#include "compare/judge/reach.h"
#include "compare/match/contract.h"
#include "compare/replay/local.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- an operation beyond its floor ----------------------------------------------------------- */

/* The measure that exceeds its allowance by the largest factor. */
static vn_check check_of(const vn_checkpoint *p)
{
	const vn_replayed *l = &p->replay;
	const double       slack = vn_local_slack_of(l, p->replay.independent_numbers);
	const double       token = l->local_token > 0 ? l->local_token / l->floor_token : 0;
	const double       most = l->local_max > 0 ? l->local_max / l->floor_max : 0;
	vn_check           k = { .metric = VN_M_NMSE, .form = VN_OF_OPERATION, .value = vn_local_ratio(l) };

	k.limit = slack * VN_LOCAL_LIMIT;
	if (vn_local_worst(l) / VN_PEAK_LIMIT <= k.value / VN_LOCAL_LIMIT)
		return k;
	k.metric = token > most * most ? VN_M_WORST_TOKEN_NMSE : VN_M_MAX_ABS;
	k.value = token > most * most ? token : most;
	k.limit = token > most * most ? slack * VN_PEAK_LIMIT : sqrt(slack * VN_PEAK_LIMIT);
	return k;
}

static void add_check(vn_checkpoints *all, vn_checkpoint *p, const vn_check *k)
{
	vn_checks_add(&all->terms, p, k);
	p->worst = p->n_checks - 1;
	p->status = VN_OUTSIDE;
	p->fails = true;
}

/* A checkpoint that already fails has its reason, and the report says what its operation added. */
static bool is_accused(const vn_checkpoint *p)
{
	return !p->fails && vn_local_beyond(p) && p->replay.charged_to < 0 && !vn_local_is_order(p);
}

static void check_operations(const vn_opened *o, vn_checkpoints *all)
{
	vn_limit_set set;

	for (int i = 0; i < all->n; i++) {
		vn_checkpoint *p = &all->of[i];
		if (!is_accused(p))
			continue;
		vn_limits_for(o->request.limits, p->name, &set);
		if (set.permission[VN_PERMIT_OPERATION])
			continue;
		const vn_check k = check_of(p);
		add_check(all, p, &k);
	}
}

/* ---- errors that only accumulated ------------------------------------------------------------ */

/* The values of one step, with aliases resolved. */
typedef struct step_values {
	const vn_plan        *plan;
	const vn_checkpoints *all;
	size_t                step;
	enum { UNSEEN, GOOD, BAD } * own; /* its checkpoints: none recorded; replayed and cleared; others */
	bool *clear;                      /* the value and all that it was computed from are cleared */
	bool *before;                     /* cleared in every earlier step */
	bool  yes;                        /* the answer for the value in question */
} step_values;

static bool is_cleared(const vn_checkpoint *p)
{
	return vn_local_judges(p) && !vn_local_beyond(p) && !p->replay.recorder_fault;
}

/* Are these two names of one value? Such a value is replayed once. */
static bool same_numbers(const vn_checkpoint *p, const vn_checkpoint *q)
{
	return p->value == q->value && p->step == q->step && p->m.n == q->m.n &&
	       p->m.value[VN_M_NMSE] == q->m.value[VN_M_NMSE] && p->m.value[VN_M_MAX_ABS] == q->m.value[VN_M_MAX_ABS];
}

static bool cleared_by_name(const vn_checkpoints *all, int i)
{
	const vn_checkpoint *p = &all->of[i];
	if (p->replayed)
		return is_cleared(p);
	return (i > 0 && is_cleared(p - 1) && same_numbers(p, p - 1)) ||
	       (i + 1 < all->n && is_cleared(p + 1) && same_numbers(p, p + 1));
}

static void note_reached(void *context, size_t step, int value, bool all_rows)
{
	step_values *w = context;
	(void)all_rows;
	w->yes = w->yes && (step == w->step ? w->clear[value] : w->before[value]);
}

/* In a plan, values come after those that they are computed from. */
static void walk_step(step_values *w, int from, int to)
{
	const vn_plan *plan = w->plan;

	for (int v = 0; v < plan->n_values; v++)
		w->own[v] = UNSEEN;
	for (int i = from; i < to; i++) {
		const vn_checkpoint *p = &w->all->of[i];
		const bool           good = p->m.n && p->value >= 0 && cleared_by_name(w->all, i);
		if (p->value >= 0 && p->m.n)
			w->own[p->value] = good && w->own[p->value] != BAD ? GOOD : BAD;
	}
	for (int v = 0; v < plan->n_values; v++) {
		w->yes = w->own[v] != BAD;
		if (w->yes)
			vn_reach_inputs(plan, w->step, v, true, note_reached, w);
		w->clear[v] = w->yes;
	}
	for (int v = 0; v < plan->n_values; v++)
		w->before[v] = w->before[v] && w->clear[v];
}

/* A comparison. */
typedef struct all_judged {
	const vn_opened      *o;
	const vn_checkpoints *all;
	const vn_pools       *pools;
} all_judged;

/* The error of the worst channel over what chance allows, of all steps of p's pool; infinite: not
 * known. */
static double channel_of_pool(const all_judged *j, const vn_checkpoint *p)
{
	const vn_channel_pool *g = p->channels >= 0 ? &j->pools->channel_pool[p->channels] : NULL;

	for (int i = g ? g->rows - 1 : -1; i >= 0; i--) {
		const vn_checkpoint *last = &j->all->of[g->row[i].point];
		if (last->channels == p->channels && last->replay.channel_of_steps > 0)
			return last->replay.channel_of_steps;
	}
	return (double)INFINITY;
}

/* At the end of a long span: does the metric measure the size of the whole error, as the replay
 * does, or that of one channel's error, which the span's draws allow? Or a common factor that an
 * error of this size and of so few degrees of freedom has by chance: at most 6 standard errors, and
 * of a norm what the error adds to it. Slots may hold other experts than R's, which resemble
 * them in nothing: they add twice their share to the error, and take it from the factor. */
static bool span_clears(const all_judged *j, const vn_checkpoint *p, const vn_check *k)
{
	const vn_metric_info *info = vn_metric_get(k->metric);
	const double          nmse = p->m.value[VN_M_NMSE], x = p->m.value[k->metric];
	const double          error = 6 * sqrt(nmse / (double)p->replay.independent_numbers);
	const bool            whole = !k->steps && p->m.worst_nmse_channel < 0; /* few rows have no channels */
	const bool            slots = p->value >= 0 && j->o->plan->value[p->value].point == VN_POINT_EXPERT_OUT;

	if (slots && !k->steps && info->worst == VN_WORST_CHANNEL && info->kind == VN_KIND_FACTOR)
		return x <= p->m.value[VN_M_WORST_CHANNEL_NMSE];
	if (info->worst == VN_WORST_CHANNEL && !whole)
		return k->metric == VN_M_WORST_CHANNEL_NMSE && (k->steps ? channel_of_pool(j, p) : p->replay.channel) <= 1;
	if (info->kind == VN_KIND_NORM)
		return fabs(x - 1) <= error + nmse / 2;
	return info->kind != VN_KIND_FACTOR || x <= error + (slots ? nmse / 2 : 0);
}

/* May this check fail by accumulated error alone? Only if it measures an error, and the limit is
 * a shipped one: limits that a person wrote stand. */
static bool may_accumulate(const all_judged *j, const vn_checkpoint *p, const vn_check *k)
{
	return k->rule && k->rule->shipped && !k->note && k->form != VN_OF_OPERATION && vn_metric_is_error(k->metric) &&
	       (p->replay.span <= VN_SPAN_CLEARED || span_clears(j, p, k));
}

/* all: the value must be cleared in every step. */
static bool only_accumulated(const all_judged *j, const vn_checkpoint *p, bool all)
{
	vn_limit_set set;

	if (p->status != VN_OUTSIDE || !p->fails || p->invalid_floor)
		return false;
	for (int i = 0; i < p->n_checks; i++) {
		const vn_check k = vn_check_at(p, i);
		if (!k.holds && (!may_accumulate(j, p, &k) || (k.steps && !all)))
			return false;
	}
	vn_limits_for(j->o->request.limits, p->name, &set);
	return !set.permission[VN_PERMIT_ACCUMULATED];
}

static void forgive_checkpoint(vn_pools *pools, vn_checkpoint *p)
{
	p->status = VN_ACCUMULATED;
	p->fails = false;
	if (p->pooled_small >= 0)
		pools->pooled_small[p->pooled_small].outside = false;
	if (p->channels >= 0)
		pools->channel_pool[p->channels].outside = false;
}

/* ---- limits on several steps together -------------------------------------------------------- */

/* The first checkpoint of this name that fails although it is not cleared; else the one that has
 * the largest error of those that were replayed and are not cleared; -1. */
static int find_not_cleared(const vn_checkpoints *all, const bool *clear, const char *name)
{
	int worst = -1;

	for (int i = 0; i < all->n; i++) {
		const vn_checkpoint *q = &all->of[i];
		if (clear[i] || !q->m.n || strcmp(q->name, name) != 0)
			continue;
		if (q->fails)
			return i;
		if (!q->replayed) /* nothing is known of it */
			continue;
		if (worst < 0 || q->m.value[VN_M_NMSE] > all->of[worst].m.value[VN_M_NMSE])
			worst = i;
	}
	return worst;
}

/* Several steps break a limit together, and p, which is cleared, was named for it. Another step has
 * the fault: p is forgiven, and that step fails. */
static void charge_other_step(vn_checkpoints *all, const bool *clear, vn_checkpoint *p)
{
	const int other = find_not_cleared(all, clear, p->name);

	if (other < 0)
		return;
	if (!all->of[other].fails) {
		const vn_check k = vn_check_at(p, p->worst);
		add_check(all, &all->of[other], &k);
	}
	p->status = VN_ACCUMULATED;
	p->fails = false;
}

static int end_of_step(const vn_checkpoints *all, int from)
{
	int to = from + 1;
	while (to < all->n && all->of[to].step == all->of[from].step)
		to++;
	return to;
}

static void forgive_accumulated(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, step_values *w, bool *clear)
{
	const all_judged     j = { o, all, pools };
	const vn_checkpoint *p = all->of;
	int                  from = 0, last = -1;

	for (int v = 0; v < o->plan->n_values; v++)
		w->before[v] = true;
	/* extra checkpoints come last, whatever their step */
	for (int to; from < all->n && p[from].step > last; from = to) {
		to = end_of_step(all, from);
		last = p[from].step;
		w->step = (size_t)last;
		walk_step(w, from, to);
		for (int i = from; i < to; i++)
			clear[i] = p[i].value >= 0 && w->clear[p[i].value];
	}
	for (; from < all->n; from++)
		if (p[from].m.n && p[from].value >= 0)
			w->before[p[from].value] = false;
	for (int i = 0; i < all->n; i++)
		if (clear[i] && only_accumulated(&j, &p[i], w->before[p[i].value]))
			forgive_checkpoint(pools, &all->of[i]);
	for (int i = 0; i < all->n; i++)
		if (clear[i] && only_accumulated(&j, &p[i], true))
			charge_other_step(all, clear, &all->of[i]);
}

void vn_replay_judge_operations(const vn_opened *o, const struct vn_weights *weights, vn_checkpoints *all,
                                vn_pools *pools, bool replayed)
{
	if (!replayed || vn_other_weights(weights))
		return;
	check_operations(o, all);
	if (!o->plan)
		return;
	const size_t n = (size_t)o->plan->n_values;
	step_values  w = { .plan = o->plan,
		               .all = all,
		               .own = vn_alloc_zero(n, sizeof *w.own),
		               .clear = vn_alloc_zero(n, sizeof *w.clear),
		               .before = vn_alloc_zero(n, sizeof *w.before) };
	bool        *clear = vn_alloc_zero((size_t)all->n, sizeof *clear);
	forgive_accumulated(o, all, pools, &w, clear);
	VN_FREE(clear, w.before, w.clear, w.own);
}
