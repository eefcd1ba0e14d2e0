/* cache_slots.c: see cache_slots.h.
 *
 * With e_j = exp(s_j) of the unmodified scores, E their sum and V the sum of e_j v_j: if the keys
 * and values of tokens a to b - 1 are zeros, the result is (V - V_ab) / (E - E_ab + (b - a)); if
 * only their values are zeros, it is (V - V_ab) / E; if only their keys are, (V - V_ab + U_ab) / (E
 * - E_ab + (b - a)), with U the sum of v_j; if they are replaced by tokens c to d - 1, (V - V_ab +
 * V_cd) / (E - E_ab + E_cd). So one pass over a query's keys covers every range. If tokens are not
 * seen, what remains comes from before and after the range, and may be small compared to it, so it
 * is summed from both ends.
 */
#include "compare/explain/cache_slots.h"
#include "compare/explain/last_query.h"
#include "compare/trial/attend.h"
#include "compare/trial/trial_apply.h"
#include "compare/trial/score.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 256 }; /* the most tokens of a range: 1, 2, 4 and so on, aligned to its size like a cache block */
/* An unseen score may exceed the others by at most this much; above it, rounding would lose the
 * others in the sums. */
#define FAR 12.0
/* An error below this many floors in every step is easily reduced by chance: there are many
 * ranges. */
#define CLEAR 4.0
enum { PAIRS = 1 << 16 }; /* the most pairs of a range and another that replaces it */

typedef struct slot_range {
	int64_t from, held, n; /* held: the first replacing token, or VN_HOLDS_... */
	double  left;          /* in floors, in the step where it leaves most */
} slot_range;

/* One query of one head: its scores, and the sums over keys 0 to j. */
typedef struct query_sums {
	double *s, *e, *v;     /* (S)  (S + 1)  (S + 1, K) */
	double *e_end, *v_end; /* the same from key j on */
	double *u;             /* (S + 1, K): sums of the values without weights */
	double  top, zero;     /* subtracted from scores before exp; exp(0 - top) */
	double  sink;          /* the exponential that has no key */
} query_sums;

static void add_up(const vn_last_query *s, int head, query_sums *to)
{
	const int K = s->K;
	double    top = fmax(s->sink[head], 0);

	to->e[0] = 0;
	memset(to->v, 0, (size_t)K * sizeof *to->v);
	memset(to->u, 0, (size_t)K * sizeof *to->u);
	for (int64_t j = 0; j < s->S; j++) {
		const double *k = vn_last_query_row(s, s->k, j, head);
		double        dot = 0;
		for (int d = 0; d < K; d++)
			dot += s->q[head * K + d] * k[d];
		to->s[j] = vn_attend_score(s->n, dot);
		top = j >= s->first && to->s[j] > top ? to->s[j] : top;
	}
	for (int64_t j = 0; j < s->S; j++) {
		const double  e = exp(fmin(to->s[j] - top, FAR));
		const double *v = vn_last_query_row(s, s->v, j, head);
		to->e[j + 1] = to->e[j] + e;
		for (int d = 0; d < K; d++) {
			to->v[(j + 1) * K + d] = to->v[j * K + d] + e * v[d];
			to->u[(j + 1) * K + d] = to->u[j * K + d] + v[d];
		}
	}
	to->top = top;
	to->zero = exp(-top);
	to->sink = exp(s->sink[head] - top);
	to->e_end[s->S] = 0;
	memset(to->v_end + s->S * K, 0, (size_t)K * sizeof *to->v_end);
	for (int64_t j = s->S; j-- > 0;) {
		const double  e = exp(fmin(to->s[j] - top, FAR));
		const double *v = vn_last_query_row(s, s->v, j, head);
		to->e_end[j] = to->e_end[j + 1] + e;
		for (int d = 0; d < K; d++)
			to->v_end[j * K + d] = to->v_end[(j + 1) * K + d] + e * v[d];
	}
}

/* The end of the cached tokens of the range that this step reads differently. Equal to the start
 * if what replaces them is not cached yet. */
static int64_t end_of(const vn_last_query *s, const slot_range *r)
{
	const int64_t end = r->from + r->n;
	return r->held + r->n > s->S ? r->from : end < s->past ? end : s->past;
}

/* The squared error of the head's context if the query does not see the range. Not computed for
 * calls of several queries. */
static double unseen_error(const vn_last_query *s, const query_sums *m, int head, const slot_range *r)
{
	const int     K = s->K;
	const int64_t a = r->from > s->first ? r->from : s->first, end = end_of(s, r), b = end > a ? end : a;
	const double  sum = m->e[a] - m->e[s->first] + m->e_end[b] + m->sink;
	double        dd = 0;

	for (int i = 0; i < K; i++) {
		const double e = (m->v[a * K + i] - m->v[s->first * K + i] + m->v_end[b * K + i]) / sum - s->is[head * K + i];
		dd += e * e;
	}
	return s->single ? dd : (double)INFINITY;
}

/* The squared error of the head's context if the range holds other tokens. */
static double error_of(const vn_last_query *s, const query_sums *m, int head, const slot_range *r)
{
	const int     K = s->K;
	const int64_t a = r->from > s->first ? r->from : s->first, b = end_of(s, r), n = b > a ? b - a : 0;
	const int64_t c = n && r->held >= 0 ? r->held + (a - r->from) : 0,
				  d = r->held >= 0 ? c + n : 0;             /* in the place of a to b */
	const bool   keys = n && r->held != VN_HOLDS_NO_VALUES; /* other keys are read */
	const double sum = m->sink + m->e[s->S] - m->e[s->first] + (keys ? m->e[a] - m->e[b] : 0) + m->e[d] - m->e[c] +
	                   (keys && r->held < 0 ? (double)n * m->zero : 0);
	double dd = 0;

	for (int i = 0; i < K; i++) {
		const double v = m->v[s->S * K + i] - m->v[s->first * K + i] + (n ? m->v[a * K + i] - m->v[b * K + i] : 0) +
		                 m->v[d * K + i] - m->v[c * K + i] +
		                 (n && r->held == VN_HOLDS_NO_KEYS ? m->zero * (m->u[b * K + i] - m->u[a * K + i]) : 0);
		const double e = v / sum - s->is[head * K + i];
		dd += e * e;
	}
	return dd;
}

/* The squared error of the head's scores under the range. */
static double scores_error(const vn_last_query *s, const query_sums *m, int head, const slot_range *r)
{
	const double *there = s->is + head * s->S;
	const int64_t end = end_of(s, r);
	double        dd = 0;

	if (r->held == VN_HOLDS_UNSEEN)
		return (double)INFINITY; /* scores of masked keys are set later, by the mask */
	for (int64_t j = s->first; j < s->S; j++) {
		const bool   in = j >= r->from && j < end && r->held != VN_HOLDS_NO_VALUES;
		const double e = (in ? r->held < 0 ? 0 : m->s[r->held + (j - r->from)] : m->s[j]) - there[j];
		dd += e * e;
	}
	return dd;
}

/* The squared error of the head's probabilities under the range. */
static double probs_error(const vn_last_query *s, const query_sums *m, int head, const slot_range *r)
{
	const double *there = s->is + head * s->S;
	const int64_t a = r->from > s->first ? r->from : s->first, end = end_of(s, r), b = end > a ? end : a;
	const double  gone = r->held == VN_HOLDS_UNSEEN ? 0 : m->zero;
	double        sum = m->sink + m->e[a] - m->e[s->first] + m->e_end[b], dd = 0;

	if (r->held == VN_HOLDS_UNSEEN && !s->single)
		return (double)INFINITY;
	if (r->held == VN_HOLDS_NO_VALUES)
		sum += m->e[b] - m->e[a];
	else
		sum += r->held >= 0 ? m->e[r->held + (b - r->from)] - m->e[r->held + (a - r->from)] : (double)(b - a) * gone;
	for (int64_t j = s->first; j < s->S; j++) {
		const bool    in = j >= a && j < b && r->held != VN_HOLDS_NO_VALUES;
		const int64_t of = in && r->held >= 0 ? r->held + (j - r->from) : j;
		const double  e = (in && r->held < 0 ? gone : exp(fmin(m->s[of] - m->top, FAR))) / sum - there[j];
		dd += e * e;
	}
	return dd;
}

static void weigh_ranges(const vn_last_query *s, const vn_findings *x, slot_range *r, int n)
{
	const int64_t    keys = s->S + 1, rows = keys * s->K, all = s->H * vn_last_query_width(s);
	double          *error = vn_alloc_zero((size_t)n, sizeof *error), size = vn_dot(s->is, s->is, all);
	VN_FREED double *room = vn_alloc((size_t)(3 * keys + 3 * rows), sizeof *room);

	query_sums m = { .s = room, .e = room + keys, .e_end = room + 2 * keys, .v = room + 3 * keys };
	m.v_end = m.v + rows;
	m.u = m.v_end + rows;
	for (int h = 0; h < s->H; h++) {
		add_up(s, h, &m);
		for (int i = 0; i < n; i++)
			error[i] += s->output == VN_ATTN_SCORES    ? scores_error(s, &m, h, &r[i])
			            : s->output == VN_ATTN_PROBS   ? probs_error(s, &m, h, &r[i])
			            : r[i].held == VN_HOLDS_UNSEEN ? unseen_error(s, &m, h, &r[i])
			                                           : error_of(s, &m, h, &r[i]);
	}
	for (int i = 0; i < n; i++) {
		const double left = error[i] / (size > 0 ? size : 1) / x->unmodified.residual.floor;
		r[i].left = left > r[i].left || isnan(left) ? left : r[i].left;
	}
	free(error);
}

/* Lists all ranges below S, each as zeros, as every other range of its length and (of any length,
 * if these are not too many) as not seen. *n: how many. */
static slot_range *list_ranges(int64_t S, int *n)
{
	size_t room = 0;
	for (int64_t size = 1; size <= LONGEST; size *= 2)
		room += (size_t)(S / size * (2 + (S / size <= PAIRS / (S / size + 1) ? S / size : 1)));
	const bool  any = S * (S + 1) / 2 <= PAIRS;
	slot_range *r = vn_alloc(room + (size_t)(any ? S * (S + 1) / 2 : 2 * S), sizeof *r);

	*n = 0;
	for (int64_t size = 1; size <= (any ? S : LONGEST); size = any ? size + 1 : 2 * size)
		for (int64_t i = 0; i + size <= S; i += any ? 1 : size)
			r[(*n)++] = (slot_range) { i, VN_HOLDS_UNSEEN, size, 0 };
	for (int64_t size = 1; size <= LONGEST; size *= 2) {
		const int64_t some = S / size;
		for (int64_t i = 0; i < some; i++) {
			r[(*n)++] = (slot_range) { i * size, VN_HOLDS_NOTHING, size, 0 };
			r[(*n)++] = (slot_range) { i * size, VN_HOLDS_NO_VALUES, size, 0 };
			r[(*n)++] = (slot_range) { i * size, VN_HOLDS_NO_KEYS, size, 0 };
		}
		for (int64_t i = 0; some <= PAIRS / (some + 1) && i < some; i++)
			for (int64_t k = 0; k < some; k++)
				if (i != k)
					r[(*n)++] = (slot_range) { i * size, k * size, size, 0 };
	}
	return r;
}

/* Makes the plan in which the query does not see the first n of its keys. A step of one token has
 * one query. */
static vn_plan *plan_without(const vn_case *t, int64_t S, int64_t n)
{
	vn_trial      h = { .node = vn_case_node(t) };
	const int64_t first = vn_attention_first_key(&t->site->plan->node[h.node].c, S - 1);

	vn_trial_constant_put(&h, "window", (double)(S - first - n));
	return vn_trial_plan(t, &h);
}

/* Writes the token that each slot holds. Unseen tokens come first, where a narrower window hides
 * them. */
static void fill_slots(const slot_range *r, int64_t n, int64_t first, int64_t S, int64_t *token)
{
	for (int64_t j = 0; j < S; j++)
		token[j] = j < r->from || j >= r->from + n ? j : r->held < 0 ? -1 : r->held + j - r->from;
	for (int64_t j = first; r->held == VN_HOLDS_UNSEEN && j < r->from + n; j++)
		token[j] = j < first + n ? r->from + j - first : j - n;
}

/* Puts the numbers (..., S) of slots in the order of their tokens. */
static void put_in_order(vn_tensor *z, const int64_t *token, int64_t S)
{
	const size_t size = vn_dtype_size(z->dtype);
	char        *slots = vn_alloc((size_t)S, size), *row = (char *)z->data;

	for (int64_t i = vn_shape_count(&z->shape) / S; i > 0; i--, row += (size_t)S * size) {
		memcpy(slots, row, (size_t)S * size);
		for (int64_t j = 0; j < S; j++)
			memcpy(row + (size_t)token[j] * size, slots + (size_t)j * size, size);
	}
	free(slots);
}

/* Tries the range as a trial in the step of t->x. several: it was found in several steps. */
static void try_range(vn_case *t, const slot_range *of, int others, bool several)
{
	const vn_plan *p = t->site->plan;
	const vn_step *s = vn_case_step(t);
	vn_trial       h = {
			  .finding = of->held == VN_HOLDS_UNSEEN ? VN_FINDING_KEYS_UNSEEN
		                 : of->held < 0              ? VN_FINDING_CACHE_EMPTY
		                                             : VN_FINDING_CACHE_OTHER_TOKENS,
			  .node = vn_case_node(t),
			  .lent = several,
			  .applied = { .kind = VN_BY_CACHED, .cached = { (int)of->from, (int)of->n, (int)of->held, others } },
	};
	const int64_t S = s->position + s->tokens,
				  first = of->held == VN_HOLDS_UNSEEN ? vn_attention_first_key(&p->node[h.node].c, S - 1) : 0;
	slot_range r = *of;
	vn_made    made = { 0 };

	r.n = (r.from + r.n < s->position ? r.from + r.n : s->position) - (r.from > first ? r.from : first);
	r.from = r.from > first ? r.from : first;
	if (r.n < 1 || r.held + r.n > S || (r.held == VN_HOLDS_UNSEEN && s->tokens != 1))
		return;
	VN_FREED int64_t *token = vn_alloc((size_t)S, sizeof *token);
	fill_slots(&r, r.n, first, S, token);
	t->x->fitted = t->x->fitted || !t->x->n_fit;
	if (r.held == VN_HOLDS_UNSEEN)
		p = made.copy = plan_without(t, S, r.n);
	const int  only = r.held == VN_HOLDS_NO_KEYS ? 1 : r.held == VN_HOLDS_NO_VALUES ? 2 : 0;
	const bool moved = r.held == VN_HOLDS_UNSEEN && p && p->node[h.node].out[VN_ATTN_PROBS] == t->site->target;
	if (p && vn_run_slots(t, p, only, token, &made)) {
		if (moved) {
			put_in_order(&made.own, token, S);
			put_in_order(&made.fine, token, S);
		}
		vn_try_numbers(t, &made.own, &made.fine, &t->x->unmodified.residual, &h);
		vn_case_conclude(t);
	}
	vn_made_finish(&made);
}

/* What is done in each step: n ranges are measured; or one is tried, which others equal. */
typedef struct slot_visit {
	slot_range       *r;
	int               n;
	const slot_range *best;
	int               others;
} slot_visit;

/* Moves the recomputation to each explanation in turn. */
static void visit_each(vn_case *t, vn_findings **x, int n, const slot_visit *v)
{
	for (int i = 0; i < n; i++) {
		vn_last_query q;
		if (*x[i]->why_not)
			continue;
		t->x = x[i];
		if (!vn_case_at(t, x[i]->checkpoint) || !vn_last_query_find(t, &q))
			return;
		if (v->best)
			try_range(t, v->best, v->others, n > 1);
		else if (vn_last_query_read(t, &q))
			weigh_ranges(&q, x[i], v->r, v->n);
		vn_last_query_close(&q);
	}
}

/* The range that leaves the least error, of those that are unseen or of those that are not, if it
 * may be the answer. Among unseen ranges, the shortest one within the limit comes first. -1: no
 * range may be the answer. */
static int best_of(const slot_range *r, int n, bool unseen)
{
	int best = -1;

	for (int i = 0; i < n; i++) {
		if ((r[i].held == VN_HOLDS_UNSEEN) != unseen || !(r[i].left <= VN_LOCAL_LIMIT * VN_LOCAL_LIMIT) ||
		    !(r[i].left > 0))
			continue;
		const bool within = unseen && best >= 0 && r[best].left <= VN_LOCAL_LIMIT && r[best].n < r[i].n;
		best = best < 0 || (!within && r[i].left < r[best].left) ? i : best;
	}
	return best;
}

/* For a range of one key: how many other ranges leave as little. */
static int as_good(const slot_range *r, int n, int best)
{
	int others = 0;
	for (int i = 0; i < n; i++)
		others += i != best && r[i].n == 1 && (r[i].held < 0 ? r[i].held == r[best].held : r[best].held >= 0) &&
		          r[i].left <= VN_LOCAL_LIMIT;
	return others;
}

/* Is it the first step, made of several calls? Later ones read a cache, which may be wrong. */
static bool is_joined(const vn_case *t, const vn_step *s)
{
	const vn_step *call;

	return s->position == 0 && vn_recording_calls(t->opened->cand, &call) > 0 && call->tokens < s->tokens;
}

static void find_slots(vn_case *t, vn_findings **x, int n, int64_t S)
{
	int                  n_ranges;
	VN_FREED slot_range *r = list_ranges(S, &n_ranges);

	visit_each(t, x, n, &(slot_visit) { .r = r, .n = n_ranges });
	const int unseen = best_of(r, n_ranges, true);
	/* With this many tokens, some token in the place of another fits better by chance. Names
	 * none if another fits as well. */
	for (int i = 0; unseen >= 0 && r[unseen].left <= VN_LOCAL_LIMIT && i < n_ranges; i++)
		r[i].left = r[i].held >= 0 ? (double)INFINITY : r[i].left;
	const int all[] = { best_of(r, n_ranges, false), unseen };
	/* A step with an unusually small floor leaves more floors; it is judged on its own. */
	for (int i = 0; i < 2; i++)
		if (all[i] >= 0)
			visit_each(t, x, n, &(slot_visit) { .best = &r[all[i]], .others = as_good(r, n_ranges, all[i]) });
}

void vn_explain_cache_slots(vn_case *t, vn_findings **x, int n)
{
	VN_FREED vn_findings **cached = vn_alloc((size_t)n, sizeof *cached); /* without a joined first step */
	int64_t                S = 0;
	bool                   clear = false, fits = true;
	int                    some = 0;

	for (int i = 0; i < n; i++) {
		const vn_step *s = vn_recording_step(t->opened->cand, t->result->checkpoints.of[x[i]->checkpoint].step);
		if (s && is_joined(t, s))
			continue;
		fits = fits && s && s->position; /* or wrong in a step without cached tokens */
		S = s && s->position > S ? s->position : S;
		clear = clear || x[i]->unmodified.limit_fraction > CLEAR;
		cached[some++] = x[i];
	}
	if (clear && fits)
		find_slots(t, cached, some, S);
}
