/* cache_one_slot.c: see cache_slots.h.
 *
 * With p_j the probabilities of the unmodified operation and y the sum of p_j v_j: if the value of
 * slot a is v, the context is y + p_a (v - v_a) in every head and step; if its key is another, it
 * is y + w (v_a - y) with a number w of each head and step, and only column a of the scores
 * changes. So the slot is found before its content is known. The content is then compared with the
 * keys and values of other tokens.
 */
#include "compare/explain/cache_slots.h"
#include "compare/explain/last_query.h"
#include "compare/trial/attend.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An error below this many floors in every step is easily reduced by
 * chance: there are many slots. */
#define CLEAR 4.0
/* Another slot that leaves no more than this many times the limit may be the answer as well. */
#define APART 4.0
/* A query shows a slot's value if that value changes the query's head by this many floors. */
#define TELLS 16.0

enum { KEY = 1, VALUE = 2 };
enum { PAIRS = 1 << 16 }; /* the most pairs of a slot and a token that are tried */

/* A step of one token. */
typedef struct token_query {
	vn_findings  *x;
	vn_last_query a;
	double       *s, *p, *y; /* (H,S) (H,S) (H,K): unmodified */
	double        size;
} token_query;

static int64_t count_of(const token_query *q)
{
	return q->a.H * vn_last_query_width(&q->a);
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void close_query(token_query *q)
{
	vn_last_query_close(&q->a);
	VN_FREE(q->s, q->p, q->y);
}

static void attend_query(token_query *q)
{
	const int K = q->a.K;

	for (int h = 0; h < q->a.H; h++) {
		double *s = q->s + h * q->a.S, *p = q->p + h * q->a.S, *y = q->y + h * K, top = q->a.sink[h];
		for (int64_t j = 0; j < q->a.S; j++) {
			s[j] = vn_attend_score(q->a.n, vn_dot(q->a.q + h * K, vn_last_query_row(&q->a, q->a.k, j, h), K));
			top = j >= q->a.first ? fmax(top, s[j]) : top;
		}
		double sum = exp(q->a.sink[h] - top);
		for (int64_t j = 0; j < q->a.S; j++)
			sum += p[j] = j < q->a.first ? 0 : exp(s[j] - top);
		for (int64_t j = 0; j < q->a.S; j++) {
			const double *v = vn_last_query_row(&q->a, q->a.v, j, h);
			p[j] /= sum;
			for (int d = 0; d < K; d++)
				y[d] += p[j] * v[d];
		}
	}
}

/* Returns whether it is a step of one token of an attention. */
static bool open_query(vn_case *t, vn_findings *x, token_query *q)
{
	*q = (token_query) { .x = x };
	if (!vn_last_query_open(t, x, &q->a) || x->unmodified.residual.bad)
		return false;
	q->s = vn_alloc_zero((size_t)(q->a.H * q->a.S), sizeof *q->s);
	q->p = vn_alloc_zero((size_t)(q->a.H * q->a.S), sizeof *q->p);
	q->y = vn_alloc_zero((size_t)(q->a.H * q->a.K), sizeof *q->y);
	attend_query(q);
	q->size = vn_dot(q->a.is, q->a.is, count_of(q));
	return q->size > 0;
}

/* ---- what a slot leaves ---------------------------------------------------------------------- */

/* The share of slot a that fits the candidate's context best. */
static double best_share(const token_query *q, int h, int64_t a)
{
	const double *v = vn_last_query_row(&q->a, q->a.v, a, h), *y = q->y + h * q->a.K, *is = q->a.is + h * q->a.K;
	const double  least = -q->p[h * q->a.S + a] / (1 - fmin(q->p[h * q->a.S + a], 1 - 1e-9)) * 1.001;
	double        rd = 0, dd = 0;

	for (int d = 0; d < q->a.K; d++) {
		rd += (is[d] - y[d]) * (v[d] - y[d]);
		dd += (v[d] - y[d]) * (v[d] - y[d]);
	}
	return dd > 0 ? fmin(fmax(rd / dd, least), 1) : 0;
}

/* The share of slot a if its key is token c's. */
static double share_of(const token_query *q, int h, int64_t a, int64_t c)
{
	const double *s = q->s + h * q->a.S, p = q->p[h * q->a.S + a], grown = p * exp(fmin(s[c] - s[a], 500));

	return (grown - p) / (1 - p + grown);
}

/* The unmodified operation's output of a head. */
static const double *unmodified_head(const token_query *q, int h)
{
	return q->a.output == VN_ATTN_CONTEXT ? q->y + h * q->a.K
	                                      : (q->a.output == VN_ATTN_SCORES ? q->s : q->p) + h * q->a.S;
}

typedef struct slot_search {
	int     of;
	int64_t at, holds;
	double  left; /* in floors, of the step with the largest error left */
	int     others;
	bool    in[VN_HEADS_MOST];
	bool    some; /* only in the key heads of `in` */
} slot_search;

/* Writes what the step's output, (H,K) or (H,S), would be with another key or value in slot a. of
 * KEY: token c's key, or (VN_HOLDS_UNKNOWN) the key that fits best. of VALUE: the value is greater
 * by `by` (G,K). in (G): the key heads with the other content; NULL: all. */
static void make_output(const token_query *q, const slot_search *s, const double *by, double *to)
{
	const int64_t a = s->at, c = s->holds;
	const int     K = q->a.K, group = q->a.H / q->a.G;
	const int64_t n = vn_last_query_width(&q->a);

	for (int h = 0; h < q->a.H; h++) {
		const double *p = q->p + h * q->a.S, *is = q->a.is + h * n, *v = vn_last_query_row(&q->a, q->a.v, a, h);
		double       *y = to + h * n;
		memcpy(y, unmodified_head(q, h), (size_t)n * sizeof *y);
		if (s->some && !s->in[h / group])
			continue;
		if (q->a.output == VN_ATTN_CONTEXT && s->of == VALUE) {
			for (int d = 0; d < K; d++)
				y[d] += p[a] * by[h / group * K + d];
		} else if (q->a.output == VN_ATTN_CONTEXT) {
			/* with the share w more of the sum */
			const double w = c == VN_HOLDS_UNKNOWN ? best_share(q, h, a) : share_of(q, h, a, c);
			for (int d = 0; d < K; d++)
				y[d] += w * (v[d] - y[d]);
		} else if (q->a.output == VN_ATTN_SCORES) {
			y[a] = c == VN_HOLDS_UNKNOWN ? is[a] : q->s[h * n + c];
		} else {
			const double w = share_of(q, h, a, c == VN_HOLDS_UNKNOWN ? a : c),
						 share = c == VN_HOLDS_UNKNOWN ? is[a] : p[a] + w * (1 - p[a]);
			for (int64_t j = 0; j < n; j++)
				y[j] = j == a ? share : p[j] * (1 - share) / (1 - p[a]);
		}
	}
}

/* The nmse that is left, in floors. room: (count_of) */
static double left_with(const token_query *q, const slot_search *s, const double *by, double *room)
{
	make_output(q, s, by, room);
	return vn_square_distance(room, q->a.is, count_of(q)) / q->size / q->x->unmodified.residual.floor;
}

/* Writes by how much slot a's value must be greater, (G,K), to fit all steps best. Returns true if
 * every key head that some query shows is shown by at least two, and some head is. */
static bool best_value(const token_query *q, int n, int64_t a, double *by)
{
	const int K = q->a.K, group = q->a.H / q->a.G;
	bool      any = false, many = true;

	for (int g = 0; g < q->a.G; g++) {
		double *to = by + g * K, pp = 0;
		int     tell = 0;
		memset(to, 0, (size_t)K * sizeof *to);
		for (int i = 0; i < n; i++)
			for (int h = g * group; h < (g + 1) * group; h++) {
				const double p = q[i].p[h * q[i].a.S + a];
				pp += p * p;
				for (int d = 0; d < K; d++)
					to[d] += p * (q[i].a.is[h * K + d] - q[i].y[h * K + d]);
			}
		for (int d = 0; d < K; d++)
			to[d] = pp > 0 ? to[d] / pp : 0;
		for (int i = 0; i < n; i++)
			for (int h = g * group; h < (g + 1) * group; h++) {
				const double p = q[i].p[h * q[i].a.S + a];
				tell += p * p * vn_dot(to, to, K) > TELLS * q[i].x->unmodified.residual.floor * q[i].size / q->a.H;
			}
		any = any || tell;
		many = many && tell != 1;
	}
	return any && many;
}

/* ---- which slot, and what it holds ----------------------------------------------------------- */

/* The steps, and room: room for an output (the largest count_of), by for a value (G,K). */
typedef struct query_steps {
	const token_query *q;
	int                n;
	int64_t            S; /* slots that every step has */
	double            *room, *by;
} query_steps;

/* The largest error left in any step, in floors. Stops at the first step that leaves more than
 * `enough`. */
static double worst_error(const query_steps *x, const slot_search *s, double enough)
{
	double most = 0;

	for (int i = 0; i < x->n && most < (double)INFINITY && most <= enough; i++) {
		const double left = left_with(&x->q[i], s, x->by, x->room);
		most = left > most || isnan(left) ? (isnan(left) ? (double)INFINITY : left) : most;
	}
	return most;
}

/* Writes to x->by by how much the value of slot a is greater if it is token c's; VN_HOLDS_UNKNOWN:
 * if it is the value that fits best. Returns false if the queries do not show the latter. */
static bool put_value(const query_steps *x, int64_t a, int64_t c)
{
	const int64_t n = (int64_t)x->q->a.G * x->q->a.K;

	if (c == VN_HOLDS_UNKNOWN)
		return best_value(x->q, x->n, a, x->by);
	for (int64_t i = 0; i < n; i++)
		x->by[i] = x->q->a.v[c * n + i] - x->q->a.v[a * n + i];
	return true;
}

/* Slots [from, to), and the tokens [held_from, held_to) whose key or value they may hold. */
typedef struct slot_places {
	int64_t from, to, held_from, held_to;
} slot_places;

/* Finds the slot and token that leave the least error; and how many others leave no more than
 * `limit`. */
static slot_search search_slots(const query_steps *x, slot_search best, slot_places in, double limit)
{
	slot_search s = best;

	best.left = (double)INFINITY;
	best.others = 0;
	for (s.at = in.from; s.at < in.to; s.at++)
		for (s.holds = in.held_from; s.holds < in.held_to; s.holds++) {
			if (s.holds == s.at || (s.of == VALUE && !put_value(x, s.at, s.holds)))
				continue;
			const double left = worst_error(x, &s, fmax(best.left, limit));
			best.others += left <= limit;
			if (left < best.left) {
				best.left = left;
				best.at = s.at;
				best.holds = s.holds;
			}
		}
	best.others -= best.left <= limit;
	return best;
}

/* Finds the slot whose key or value is wrong, whatever it holds. */
static slot_search find_slot(const query_steps *x, int of)
{
	return search_slots(x, (slot_search) { .of = of, .at = -1, .holds = VN_HOLDS_UNKNOWN },
	                    (slot_places) { 0, x->S, VN_HOLDS_UNKNOWN, VN_HOLDS_UNKNOWN + 1 }, APART * VN_LOCAL_LIMIT);
}

/* Finds the slot that holds another token's value, where too few queries show the value by
 * itself. */
static slot_search find_pair(const query_steps *x)
{
	const int64_t S = x->S * x->S <= PAIRS ? x->S : 0;

	return search_slots(x, (slot_search) { .of = VALUE, .at = -1, .holds = VN_HOLDS_UNKNOWN },
	                    (slot_places) { 0, S, 0, S }, APART * VN_LOCAL_LIMIT);
}

/* Finds the token whose key or value slot s holds. A later token is in the cache only of later
 * steps. */
static void find_holder(const query_steps *x, slot_search *s)
{
	const slot_search best = search_slots(x, *s, (slot_places) { s->at, s->at + 1, 0, x->S }, VN_LOCAL_LIMIT);

	if (best.left <= VN_LOCAL_LIMIT || best.left <= APART * s->left)
		*s = best;
}

/* Finds the key heads whose results are wrong in some step. Returns true if these are some heads,
 * but not all. */
static bool find_heads(const token_query *q, int n, bool *in)
{
	const int G = q->a.G, group = q->a.H / G;
	int       some = 0;

	for (int g = 0; g < G && G <= VN_HEADS_MOST; g++) {
		in[g] = false;
		for (int i = 0; i < n; i++) {
			const int64_t w = vn_last_query_width(&q[i].a);
			double        dd = 0;
			for (int h = g * group; h < (g + 1) * group; h++)
				for (int64_t k = 0; k < w; k++) {
					const double d = q[i].a.is[h * w + k] - unmodified_head(&q[i], h)[k];
					dd += d * d;
				}
			in[g] = in[g] || !(dd <= VN_LOCAL_LIMIT * q[i].x->unmodified.residual.floor * q[i].size / G);
		}
		some += in[g];
	}
	return some && some < G;
}

/* Finds what slot s holds in all heads; or only in the wrong heads, if only then it is a token's or
 * if that fits better. */
static void find_holder_in_heads(const query_steps *x, slot_search *s)
{
	slot_search all = *s, some = *s;

	if (s->holds == VN_HOLDS_UNKNOWN)
		find_holder(x, &all);
	if ((some.some = find_heads(x->q, x->n, some.in)))
		find_holder(x, &some);
	/* Content that is no token's may be wrong in the other heads too: a head that hardly reads the
	 * slot does not show it. */
	const bool better = some.some && some.holds != VN_HOLDS_UNKNOWN &&
	                    (all.holds == VN_HOLDS_UNKNOWN ||
	                     (s->holds == VN_HOLDS_UNKNOWN && all.left > VN_EXPLAIN_LEAST &&
	                      some.left * VN_EXPLAIN_APART < all.left));
	*s = better ? some : all;
}

/* several: it was found in several steps. */
static void try_slot(vn_case *t, const token_query *q, const slot_search *s, const double *by, bool several)
{
	vn_trial h = VN_TRIAL(CACHE_ONE_ALONE, (int)(q->a.n - t->site->plan->node), .kind = VN_BY_ONE_CACHED,
	                      .one_cached = { (int)s->at, s->of, (int)s->holds, s->others });
	vn_made  made;

	h.lent = several;
	if (!vn_last_query_begin(t, q->x, &made))
		return;
	for (int i = 0; s->some && i < q->a.H && q->a.H <= VN_HEADS_MOST; i++) {
		h.part[i] = s->in[i / (q->a.H / q->a.G)];
		h.heads = q->a.H;
	}
	make_output(q, s, by, (double *)made.fine.data);
	vn_made_round(t, &made);
	vn_last_query_try(t, &h, &made);
}

static void try_best(vn_case *t, const query_steps *x)
{
	slot_search key = find_slot(x, KEY), value = { .left = (double)INFINITY };

	if (x->q->a.output == VN_ATTN_CONTEXT && !((value = find_slot(x, VALUE)).left <= VN_LOCAL_LIMIT))
		value = find_pair(x);
	slot_search *best = value.left < key.left ? &value : &key;
	/* Another slot, or the other of the two, fits as well: these numbers do not tell. */
	const double second = value.left < key.left ? key.left : value.left;
	if (best->at < 0 || !(best->left <= VN_LOCAL_LIMIT) || best->others || second <= APART * VN_LOCAL_LIMIT)
		return;
	find_holder_in_heads(x, best);
	if (best->of == VALUE)
		put_value(x, best->at, best->holds);
	for (int i = 0; i < x->n; i++)
		try_slot(t, &x->q[i], best, x->by, x->n > 1);
}

void vn_explain_one_slot(vn_case *t, vn_findings **x, int n)
{
	VN_FREED token_query *q = vn_alloc_zero((size_t)n, sizeof *q);
	bool                  clear = false, fits = n > 0;
	int                   some = 0;

	for (int i = 0; i < n; i++)
		clear = clear || x[i]->unmodified.limit_fraction > CLEAR;
	for (int i = 0; clear && fits && i < n; i++)
		if (!*x[i]->why_not)
			fits = open_query(t, x[i], &q[some++]);
	if (clear && fits && some) {
		const int64_t values = (int64_t)q->a.G * q->a.K;
		query_steps   steps = { .q = q, .n = some, .S = q->a.S };
		int64_t       most = 0;
		for (int i = 0; i < some; i++) {
			most = count_of(&q[i]) > most ? count_of(&q[i]) : most;
			steps.S = q[i].a.S < steps.S ? q[i].a.S : steps.S;
		}
		steps.by = vn_alloc((size_t)values, sizeof *steps.by);
		steps.room = vn_alloc((size_t)most, sizeof *steps.room);
		try_best(t, &steps);
		VN_FREE(steps.by, steps.room);
	}
	for (int i = 0; i < some; i++)
		close_query(&q[i]);
}
