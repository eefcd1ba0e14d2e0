/* across_steps.c: see across_steps.h. */
#include "compare/explain/across_steps.h"
#include "compare/explain/cache_slots.h"
#include "compare/explain/explain_point.h"
#include "compare/replay/local.h"
#include "compare/trial/score.h"

#include "libref/base/alloc.h"
#include "libref/base/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OTHERWISE = 16 }; /* at most this many steps with another answer test an answer */
enum { RIGHT = 3 };      /* at most this many steps without an error test a trial */

/* In another step the trial leaves, or would have left, more error than an underestimated
 * floor explains. */
#define BEYOND 4.0
/* A step with more error than this is wrong for a reason. A fitted answer of another step that
 * leaves half of the error or more is not that reason. */
#define WRONG 2.0

/* Errors of two results that differ by rounding. */
#define SAME 1e-4

/* How a trial fares at a checkpoint. */
typedef struct verdict {
	vn_trial h;
	int      checkpoint;
	double   limit_fraction; /* NaN: it changes nothing there */
	bool     changed;        /* it leaves another error than the unmodified operation */
} verdict;

/* The refuted answers of an explanation, kept apart. */
typedef struct refuted_answers {
	vn_trial by[VN_EXPLAIN_KEPT];
	int      n;
} refuted_answers;

/* The explanations of one point. */
typedef struct point_group {
	vn_case         *t;
	vn_findings    **x; /* (n) */
	int              n;
	vn_findings    **beside; /* (n_beside) of other results of the same operation */
	int              n_beside;
	verdict         *known;
	int              n_known;
	refuted_answers *refuted; /* (n) */
	int             *right;   /* (n_right) checkpoints of the point that are right */
	int              n_right;
} point_group;

static const char *name_of(const vn_result *r, const vn_findings *x)
{
	return r->checkpoints.of[x->checkpoint].name;
}

/* The operation that makes the checkpoint; -1: none of the model's plan. */
static int node_of(const vn_case *t, const vn_findings *x)
{
	const vn_plan *p = vn_model_plan(t->opened->model);
	const int      v = vn_plan_find(p, name_of(t->result, x));

	return v < 0 ? -1 : p->value[vn_plan_root(p, v)].node;
}

/* Does the checkpoint differ in the order of its columns alone? */
static bool is_order(const vn_result *r, const vn_findings *x)
{
	return vn_local_is_order(&r->checkpoints.of[x->checkpoint]);
}

static bool one_token(const vn_case *t, int point)
{
	const vn_step *s = vn_recording_step(t->opened->cand, t->result->checkpoints.of[point].step);
	return s && s->tokens == 1;
}

/* Can it be tried in a step that has another answer, or none? */
static bool can_be_lent(const vn_trial *h)
{
	return vn_trial_is_fitted(h) || vn_trial_is_pair(h);
}

/* ---- a trial in another step ------------------------------------------------------------ */

/* A trial with a range of numbers (FROM to TO) may hold with other numbers too. With two
 * fitted numbers, not every pair is valid. */
static bool has_others(const vn_trial *h)
{
	return vn_trial_is_fitted(h) && h->last && h->finding != VN_FINDING_WINDOW_AND_SINKS;
}

static void make_there(vn_case *t, const vn_trial *h, verdict *v)
{
	vn_findings  there = { .checkpoint = v->checkpoint, .by = vn_alloc_zero(VN_EXPLAIN_KEPT, sizeof *there.by) };
	vn_findings *here = t->x;

	t->x = &there;
	for (int k = 0; k < (has_others(h) ? 3 : 1); k++) {
		vn_trial with = *h;
		if (k)
			vn_trial_number_put(&with, (double)(k == 1 ? h->first : h->last));
		there.n = 0;
		vn_explain_with(t, &with);
		for (int i = 0; i < there.n; i++)
			if (vn_trial_same_place(&there.by[i], h) && !(there.by[i].limit_fraction >= v->limit_fraction)) {
				v->limit_fraction = there.by[i].limit_fraction;
				v->changed = fabs(there.by[i].residual.local / there.unmodified.residual.local - 1) > SAME;
			}
	}
	t->x = here;
	free(there.by);
}

/* Valid until the next call. */
static const verdict *verdict_there(point_group *g, const vn_trial *h, int point)
{
	for (int i = 0; i < g->n_known; i++)
		if (g->known[i].checkpoint == point && vn_trial_same_place(&g->known[i].h, h))
			return &g->known[i];
	g->known = vn_alloc_grown(g->known, (size_t)g->n_known, sizeof *g->known);
	verdict *v = &g->known[g->n_known++];
	*v = (verdict) { .h = *h, .checkpoint = point, .limit_fraction = (double)NAN };
	make_there(g->t, h, v);
	return v;
}

static double fraction_there(point_group *g, const vn_trial *h, int point)
{
	return verdict_there(g, h, point)->limit_fraction;
}

/* ---- steps that speak against it ------------------------------------------------------------- */

/* Lists the checkpoints of the group's point that are right. */
static void list_right(point_group *g)
{
	const vn_case *t = g->t;

	g->n_right = 0;
	for (int i = 0; i < t->result->checkpoints.n; i++) {
		const vn_checkpoint *p = &t->result->checkpoints.of[i];
		if (!p->replayed || p->origin || p->replay.recorder_fault || p->replay.columns ||
		    strcmp(p->name, name_of(t->result, g->x[0])) != 0 || vn_local_beyond(p))
			continue;
		g->right = vn_alloc_grown(g->right, (size_t)g->n_right, sizeof *g->right);
		g->right[g->n_right++] = i;
	}
}

/* The first step in which the point is right, the last such step, and the one before x. */
static int right_ones(const point_group *g, const vn_findings *x, int point[RIGHT])
{
	const vn_checkpoint *of = g->t->result->checkpoints.of;
	const int            step = of[x->checkpoint].step;
	int                  first = -1, last = -1, before = -1, n = 0;

	for (int k = 0; k < g->n_right; k++) {
		const int i = g->right[k];
		first = first < 0 || of[i].step < of[first].step ? i : first;
		last = last < 0 || of[i].step > of[last].step ? i : last;
		before = of[i].step < step && (before < 0 || of[i].step > of[before].step) ? i : before;
	}
	const int all[RIGHT] = { first, before, last };
	for (int i = 0; i < RIGHT; i++)
		if (all[i] >= 0 && (i < 1 || all[i] != all[0]) && (i < 2 || all[i] != all[1]))
			point[n++] = all[i];
	return n;
}

/* Is h among the answers of y? */
static bool answers_with(const vn_findings *y, const vn_trial *h)
{
	for (int i = 0; i < y->n_fit; i++)
		if (vn_trial_same_place(&y->by[i], h))
			return true;
	return false;
}

/* Can the wrong step y confirm or refute the trial h about x? A fitted h has a number of
 * its own; all steps must agree on that number, including steps that have another answer. */
static bool has_a_say(const vn_case *t, const vn_findings *y, const vn_findings *x, const vn_trial *h)
{
	if (y == x || *y->why_not || !(y->unmodified.limit_fraction > (vn_trial_is_fitted(h) ? WRONG : BEYOND)))
		return false;
	return vn_trial_is_fitted(h)
	           ? !answers_with(y, h)
	           : (!y->n_fit || y->fitted) && one_token(t, y->checkpoint) == one_token(t, x->checkpoint);
}

/* Is h a window fitted in a step of one token? One query that misses a range of keys does not prove
 * a window. */
static bool of_one_query(const vn_case *t, const vn_findings *x, const vn_trial *h)
{
	return (h->finding == VN_FINDING_WINDOW || h->finding == VN_FINDING_WINDOW_AND_SINKS) &&
	       one_token(t, x->checkpoint);
}

/* Does y stay wrong under h? NaN: h cannot be tested there. Calls of the same number of tokens
 * should share their mistake. */
static bool stays_wrong(const vn_case *t, const vn_findings *y, const vn_findings *x, const vn_trial *h,
                        double limit_fraction)
{
	if (!vn_trial_is_fitted(h) || !isnan(limit_fraction))
		return limit_fraction > BEYOND ||
		       (vn_trial_is_fitted(h) && limit_fraction > fmax(1, y->unmodified.limit_fraction / 2));
	return !h->applied.later && h->applied.kind != VN_BY_STEP &&
	       one_token(t, y->checkpoint) == one_token(t, x->checkpoint);
}

static void speak_against(const point_group *g, vn_trial *h, vn_refutation how, int point)
{
	h->speaks_against = how;
	h->against_step = g->t->result->checkpoints.of[point].step;
}

/* Of several equal answers, one that holds in calls of another number of tokens too says more. A
 * fault of the catalogue that changes such a call, and leaves it wrong, comes after the others. */
static void ask_other_calls(point_group *g, const vn_findings *x, vn_trial *h)
{
	const vn_case *t = g->t;

	if (x->n_alias < 2 || vn_trial_is_fitted(h))
		return;
	for (int i = 0; i < g->n; i++) {
		const vn_findings *y = g->x[i];
		if (y == x || *y->why_not || one_token(t, y->checkpoint) == one_token(t, x->checkpoint))
			continue;
		const verdict *v = verdict_there(g, h, y->checkpoint);
		if (v->changed && v->limit_fraction > BEYOND)
			speak_against(g, h, VN_WRONG_OTHERWISE, y->checkpoint);
		break;
	}
}

/* Is it a mistake of the cache, and the step one that reads nothing cached? An engine may attend to
 * its prompt's keys where they are made, and to the cache from the next call on. */
static bool reads_no_cache(const vn_case *t, const vn_trial *h, int step)
{
	const vn_step *s = vn_recording_step(t->opened->cand, step);
	char           id[VN_ID];

	return *vn_trial_id(h, id) == 'C' && s && s->position == 0;
}

static void hold_against(point_group *g, const vn_findings *x, vn_trial *h)
{
	const vn_case *t = g->t;
	int            point[RIGHT], otherwise = 0;

	for (int i = 0; !h->refuted && i < g->n; i++) {
		const vn_findings *y = g->x[i];
		if (!has_a_say(t, y, x, h) || (y->n_fit && ++otherwise > OTHERWISE))
			continue;
		if ((h->refuted = stays_wrong(t, y, x, h, fraction_there(g, h, y->checkpoint))))
			speak_against(g, h, VN_WRONG_OTHERWISE, y->checkpoint);
	}
	for (int i = 0; !h->refuted && i < g->n_beside; i++) {
		const vn_findings *y = g->beside[i];
		if (!has_a_say(t, y, x, h))
			continue;
		const double left = fraction_there(g, h, y->checkpoint); /* NaN: it is another mistake than y's */
		if ((h->refuted = !isnan(left) && stays_wrong(t, y, x, h, left)))
			speak_against(g, h, VN_WRONG_OTHERWISE, y->checkpoint);
	}
	bool another = !of_one_query(t, x, h);
	for (int i = 0; !h->refuted && !another && i < g->n; i++)
		another = g->x[i] != x && !*g->x[i]->why_not && fraction_there(g, h, g->x[i]->checkpoint) <= 1;
	if (!another && !h->refuted) {
		h->refuted = true;
		h->speaks_against = VN_ONE_QUERY;
	}
	if (!h->refuted)
		ask_other_calls(g, x, h);
	const int n = h->refuted ? 0 : right_ones(g, x, point);
	for (int i = 0; (!h->speaks_against || reads_no_cache(t, h, h->against_step)) && i < n; i++)
		if (fraction_there(g, h, point[i]) > BEYOND)
			speak_against(g, h, VN_RIGHT_THERE, point[i]);
}

/* ---- one explanation ------------------------------------------------------------------------- */

/* If an unrefuted answer explains x as well, drops the answers that other steps refute, but none
 * of the cache that only a prompt does. */
static void take_out(point_group *g, int which)
{
	vn_findings *x = g->x[which];
	bool         unmodified = false;
	int          n = 0, gone = g->refuted[which].n;

	for (int i = 0; i < x->n_alias; i++)
		unmodified = unmodified || !x->by[i].speaks_against;
	for (int i = 0; i < x->n; i++) {
		vn_trial *h = &x->by[i];
		h->refuted = h->refuted || (unmodified && h->speaks_against &&
		                            !(h->speaks_against == VN_RIGHT_THERE && reads_no_cache(g->t, h, h->against_step)));
		if (h->refuted && gone < VN_EXPLAIN_KEPT)
			g->refuted[which].by[gone++] = *h;
		if (!h->refuted)
			x->by[n++] = *h;
	}
	x->n = n;
	g->refuted[which].n = gone;
}

/* If the list is full, replaces the answer that explains least. */
static void put_last(point_group *g, int which)
{
	vn_findings *x = g->x[which];
	const int    n = g->refuted[which].n, most = VN_EXPLAIN_KEPT - n > x->n_fit ? VN_EXPLAIN_KEPT - n : x->n_fit;

	x->n = x->n < most ? x->n : most;
	for (int i = 0; i < n && x->n < VN_EXPLAIN_KEPT; i++)
		x->by[x->n++] = g->refuted[which].by[i];
}

static bool is_one_fault(const vn_trial *h)
{
	return h->finding == VN_FINDING_FAULT && !h->fault[1];
}

static void examine_step(point_group *g, int which)
{
	vn_findings *x = g->x[which];

	for (int i = 0; i < x->n_fit; i++)
		if (!x->by[i].recorder_fault &&
		    (vn_trial_is_fitted(&x->by[i]) || (is_one_fault(&x->by[i]) && (!x->fitted || x->by[i].heads))))
			hold_against(g, x, &x->by[i]);
}

/* Removes refuted answers. Returns false if that leaves none. */
static bool keep_unrefuted(point_group *g, int which)
{
	take_out(g, which);
	if (g->refuted[which].n)
		vn_case_conclude(g->t);
	return g->x[which]->n_fit || !g->refuted[which].n;
}

static void conclude_step(point_group *g, int which)
{
	vn_findings *x = g->x[which];
	const bool   fitted = x->fitted;

	g->t->x = x;
	if (keep_unrefuted(g, which))
		return;
	x->same_answer_as = -1;
	/* An answer found in the first round must hold too. One that concerns some heads only would
	 * be found again. */
	for (int again = 0; again < 2; again++) {
		g->t->whole = again > 0;
		vn_explain_further(g->t, fitted || again);
		if (!x->n_fit)
			break;
		examine_step(g, which);
		g->t->x = x;
		if (keep_unrefuted(g, which))
			break;
	}
	g->t->whole = false;
}

/* ---- an answer of another step --------------------------------------------------------------- */

/* Tries an answer fitted in another step at a step without an answer. That step may have too few
 * numbers to fit one. */
static void lend_trial(point_group *g, int which)
{
	vn_findings *x = g->x[which];

	g->t->x = x;
	for (int i = 0; !x->n_fit && i < g->n; i++)
		for (int k = 0; !x->n_fit && g->x[i] != x && k < g->x[i]->n_alias; k++) {
			const vn_trial *h = &g->x[i]->by[k];
			if (!can_be_lent(h) || h->heads || !(fraction_there(g, h, x->checkpoint) <= 1))
				continue;
			g->t->x = x;
			vn_explain_with(g->t, h);
			vn_case_conclude(g->t);
		}
}

/* If a fault of the catalogue explains only some steps, an answer fitted in other steps may explain
 * these too; the fault is then an alias of it. So may a pair where a number was fitted. */
static void share_answer(point_group *g, int which)
{
	vn_findings *x = g->x[which];
	const bool   fitted = x->fitted;

	for (int i = 0; x->n_fit && i < g->n; i++) {
		const vn_findings *y = g->x[i];
		if (!y->n_fit || (fitted && !vn_trial_is_pair(&y->by[0])) || !y->fitted || y->by[0].heads ||
		    answers_with(x, &y->by[0]) || !can_be_lent(&y->by[0]) || answers_with(y, &x->by[0]))
			continue;
		const double limit_fraction = fraction_there(g, &y->by[0], x->checkpoint);
		if (!(limit_fraction <= 1) || !(limit_fraction <= x->unmodified.limit_fraction / 16))
			continue;
		g->t->x = x;
		vn_explain_with(g->t, &y->by[0]);
		vn_case_conclude(g->t);
		x->fitted = fitted;
	}
}

/* ---- arrangements ---------------------------------------------------------------------------- */

/* For arrangements, which are not recomputed: does y have the same arrangement with another
 * number, beyond what the precision leaves open? */
static bool another_number(const vn_findings *x, const vn_findings *y)
{
	const vn_trial *a = &x->by[0], *b = &y->by[0];
	const double    open = sqrt(x->unmodified.residual.floor) + sqrt(y->unmodified.residual.floor);

	if (!y->n_fit || !y->fitted || b->applied.kind != VN_BY_RESULT || !vn_trial_same_place(a, b) || vn_trial_same(a, b))
		return false;
	const double here = a->applied.result.number, there = b->applied.result.number;
	return here != 0 && there != 0 && !(fabs(here / there - 1) <= open);
}

/* A temperature that differs from step to step is right for each step; the report says that it
 * differs. */
static void note_other_numbers(point_group *g)
{
	for (int i = 0; i < g->n; i++) {
		vn_findings *x = g->x[i];
		vn_trial    *h = &x->by[0];
		for (int k = 0; k < g->n && x->n_fit && x->fitted && h->applied.kind == VN_BY_RESULT && !h->speaks_against; k++)
			if (another_number(x, g->x[k]))
				speak_against(g, h, VN_ANOTHER_NUMBER, g->x[k]->checkpoint);
	}
}

/* ---- one point ------------------------------------------------------------------------------- */

static bool has_unexplained(const point_group *g)
{
	for (int i = 0; i < g->n; i++)
		if (!g->x[i]->n_fit && !*g->x[i]->why_not)
			return true;
	return false;
}

/* May the content of some slots equal the answer? It may where a window was read off one query, the
 * first key is hidden, or the cache is the answer, or a right prompt contradicts it. */
static bool may_be_slots(const vn_trial *h)
{
	char id[VN_ID];

	return h->finding == VN_FINDING_WINDOW || h->finding == VN_FINDING_WINDOW_AND_SINKS ||
	       vn_trial_mistake(h) == VN_MISTAKE_A23 || h->speaks_against == VN_RIGHT_THERE || *vn_trial_id(h, id) == 'C';
}

static bool has_slots_beside(const point_group *g)
{
	for (int i = 0; i < g->n; i++)
		if (g->x[i]->n_fit && may_be_slots(&g->x[i]->by[0]) && one_token(g->t, g->x[i]->checkpoint))
			return true;
	return false;
}

/* Is the scale of the scores wrong, although it is right in another step, or the result of a step
 * of one token multiplied? Then the cached keys, or values, may be scaled. */
static bool has_scaled_beside(const point_group *g)
{
	for (int i = 0; i < g->n; i++) {
		const vn_trial *h = &g->x[i]->by[0];
		if (g->x[i]->n_fit && ((h->speaks_against == VN_RIGHT_THERE && h->finding == VN_FINDING_SCORE_SCALE) ||
		                       (h->finding == VN_FINDING_FACTOR && one_token(g->t, g->x[i]->checkpoint))))
			return true;
	}
	return false;
}

/* If a right step contradicts the answer, and another fits that none contradicts, both are shown,
 * however much less the first leaves. */
static void show_uncontradicted(vn_findings *x)
{
	int k = 0;

	while (k < x->n_fit && x->by[k].speaks_against)
		k++;
	if (k == 0 || k == x->n_fit)
		return;
	x->n_alias = k < x->n_alias ? x->n_alias : k + 1;
	x->margin = x->n > x->n_alias && !x->by[x->n_alias].refuted
	                ? x->by[x->n_alias].limit_fraction /
	                      fmax(x->by[k].limit_fraction, VN_EXPLAIN_LEAST / VN_LOCAL_LIMIT)
	                : (double)INFINITY;
}

static void one_point(point_group *g, vn_progress *bar)
{
	list_right(g);

	g->n_known = 0;
	for (int i = 0; i < g->n; i++)
		g->refuted[i].n = 0;
	for (int i = 0; i < g->n; i++) {
		examine_step(g, i);
		vn_progress_at(bar, bar->done + 1);
	}
	/* Removed only at the end: a refuted answer leaves its step without an answer, and such a step
	 * refutes no other. */
	for (int i = 0; i < g->n; i++)
		conclude_step(g, i);
	for (int i = 0; i < g->n; i++)
		if (!g->x[i]->n_fit && !*g->x[i]->why_not)
			lend_trial(g, i);
		else
			share_answer(g, i);
	if (has_unexplained(g) || has_scaled_beside(g))
		vn_explain_changed_slots(g->t, g->x, g->n);
	if (has_unexplained(g) || has_slots_beside(g))
		vn_explain_cache_slots(g->t, g->x, g->n);
	if (has_unexplained(g))
		vn_explain_one_slot(g->t, g->x, g->n);
	note_other_numbers(g);
	for (int i = 0; i < g->n; i++) {
		show_uncontradicted(g->x[i]);
		put_last(g, i);
	}
}

void vn_explain_across_steps(vn_case *t, vn_all_findings *x)
{
	const size_t   n = (size_t)x->n + 1;
	const vn_step *step;
	point_group    g = { .t = t,
		                 .x = vn_alloc_zero(n, sizeof *g.x),
		                 .beside = vn_alloc_zero(n, sizeof *g.beside),
		                 .refuted = vn_alloc_zero(n, sizeof *g.refuted) };
	VN_FREED bool *done = vn_alloc_zero(n, sizeof *done);
	VN_FREED int  *node = vn_alloc(n, sizeof *node);
	vn_progress    bar = { 0 };

	const bool several = vn_recording_steps(t->opened->cand, &step) > 1;
	if (several)
		vn_progress_start(&bar, "answer held against the other steps", x->n);
	for (int i = 0; i < x->n && several; i++)
		node[i] = is_order(t->result, &x->of[i]) ? -1 : node_of(t, &x->of[i]);
	for (int i = 0; i < x->n && several && !t->failed->st; i++) {
		if (done[i] || is_order(t->result, &x->of[i]))
			continue;
		g.n = g.n_beside = 0;
		for (int k = 0; k < x->n; k++)
			if (is_order(t->result, &x->of[k]))
				continue;
			else if (strcmp(name_of(t->result, &x->of[k]), name_of(t->result, &x->of[i])) == 0) {
				g.x[g.n++] = &x->of[k];
				done[k] = true;
			} else if (node[i] >= 0 && node[k] == node[i]) {
				g.beside[g.n_beside++] = &x->of[k];
			}
		one_point(&g, &bar);
	}
	vn_progress_stop(&bar);
	VN_FREE(g.right, g.x, g.beside, g.refuted, g.known);
}
