/* cache_one_slot.c: see cache_one_slot.h.
 *
 * With p_j the probabilities of the unmodified operation and y the sum of p_j v_j: if the value of
 * slot a is v, the context is y + p_a (v - v_a) in every head and step; if its key is another, it
 * is y + w (v_a - y) with a number w of each head and step, and only column a of the scores
 * changes. So the slot is found before its content is known. The content is then compared with the
 * keys and values of other tokens.
 */
#include "compare/explain/cache_one_slot.h"
#include "compare/hypothesis/trial.h"
#include "compare/hypothesis/score.h"

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
	vn_explanation *x;
	const vn_node  *n;
	int             output;
	int64_t         S, first;
	double         *k, *v, *q, *is; /* (S,G,K) (S,G,K) (H,K); `is`: the candidate's (H,K) or (H,S) */
	double         *s, *p, *y;      /* (H,S) (H,S) (H,K): unmodified */
	double          size;
} token_query;

static int heads_of(const token_query *q)
{
	return q->n->c.attention.heads;
}

static int width_of(const token_query *q)
{
	return q->n->c.attention.head_dim;
}

static int key_heads(const token_query *q)
{
	return q->n->c.attention.kv_heads;
}

/* The key or value that a head reads of token j. */
static const double *row_of(const token_query *q, const double *of, int64_t j, int h)
{
	return of + (j * key_heads(q) + h / (heads_of(q) / key_heads(q))) * width_of(q);
}

static double dot_product(const double *a, const double *b, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void close_query(token_query *q)
{
	free(q->k);
	free(q->v);
	free(q->q);
	free(q->is);
	free(q->s);
	free(q->p);
	free(q->y);
}

static void attend_query(token_query *q)
{
	const int K = width_of(q);

	for (int h = 0; h < heads_of(q); h++) {
		double *s = q->s + h * q->S, *p = q->p + h * q->S, *y = q->y + h * K, top = -(double)INFINITY, sum = 0;
		for (int64_t j = 0; j < q->S; j++) {
			s[j] = dot_product(q->q + h * K, row_of(q, q->k, j, h), K) * q->n->c.attention.scale;
			top = j >= q->first ? fmax(top, s[j]) : top;
		}
		for (int64_t j = 0; j < q->S; j++)
			sum += p[j] = j < q->first ? 0 : exp(s[j] - top);
		for (int64_t j = 0; j < q->S; j++) {
			const double *v = row_of(q, q->v, j, h);
			p[j] /= sum;
			for (int d = 0; d < K; d++)
				y[d] += p[j] * v[d];
		}
	}
}

/* Moves the recomputation to explanation x and reads its step. *fits: it is a step of one token
 * of an attention. */
static vn_status open_query(vn_explain_trial *t, vn_explanation *x, token_query *q, bool *fits, vn_error *err)
{
	static const int outputs[] = { VN_ATTN_CONTEXT, VN_ATTN_SCORES, VN_ATTN_PROBS };
	const vn_step   *s = vn_recording_step(t->c->opened.cand, t->c->result.checkpoint[x->checkpoint].step);
	vn_tensor        in[3];
	vn_status        st = vn_recompute_at(t->recompute, x->checkpoint, err);

	*fits = false;
	*q = (token_query) { .x = x, .output = -1 };
	if (st)
		return st;
	t->x = x;
	q->n = &t->site->plan->node[vn_trial_node(t)];
	for (size_t i = 0; i < 3 && q->n->op == VN_OP_ATTENTION; i++)
		q->output = q->n->out[outputs[i]] == t->site->target ? outputs[i] : q->output;
	if (q->output < 0 || !q->n->c.attention.causal || !s || s->tokens != 1 || s->rows != 1 ||
	    x->unmodified.residual.bad)
		return VN_OK;
	for (int i = 0; !st && i < 3; i++)
		st = vn_recompute_input(t->recompute, (const int[]) { VN_ATTN_Q, VN_ATTN_K, VN_ATTN_V }[i], VN_FINE_WIDTH,
		                        &in[i], err);
	if (st)
		return st;
	const int64_t S = q->S = s->position + 1, H = heads_of(q), K = width_of(q), G = key_heads(q);
	const int64_t window = q->n->c.attention.window, all = H * (q->output == VN_ATTN_CONTEXT ? K : S);
	q->first = window && S > window ? S - window : 0;
	if (vn_shape_count(&t->site->cand.shape) != all || vn_shape_count(&in[1].shape) < S * G * K ||
	    vn_shape_count(&in[0].shape) < S * H * K)
		return VN_OK;
	q->q = vn_trial_doubles_of(&in[0], (S - 1) * H * K, H * K);
	q->k = vn_trial_doubles_of(&in[1], 0, S * G * K);
	q->v = vn_trial_doubles_of(&in[2], 0, S * G * K);
	q->is = vn_trial_doubles_of(&t->site->cand, 0, all);
	q->s = calloc((size_t)(H * S) + 1, sizeof *q->s);
	q->p = calloc((size_t)(H * S) + 1, sizeof *q->p);
	q->y = calloc((size_t)(H * K) + 1, sizeof *q->y);
	if (!q->q || !q->k || !q->v || !q->is || !q->s || !q->p || !q->y)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for keys and values");
	attend_query(q);
	q->size = dot_product(q->is, q->is, all);
	*fits = q->size > 0;
	return VN_OK;
}

/* ---- what a slot leaves ---------------------------------------------------------------------- */

/* Writes the head's context y + w (v_a - y): slot a has another key and the share w more of the
 * sum. */
static void with_share(const token_query *q, int h, int64_t a, double w, double *to)
{
	const double *v = row_of(q, q->v, a, h), *y = q->y + h * width_of(q);

	for (int d = 0; d < width_of(q); d++)
		to[d] = y[d] + w * (v[d] - y[d]);
}

/* The share of slot a that fits the candidate's context best. */
static double best_share(const token_query *q, int h, int64_t a)
{
	const double *v = row_of(q, q->v, a, h), *y = q->y + h * width_of(q), *is = q->is + h * width_of(q);
	const double  least = -q->p[h * q->S + a] / (1 - fmin(q->p[h * q->S + a], 1 - 1e-9)) * 1.001;
	double        rd = 0, dd = 0;

	for (int d = 0; d < width_of(q); d++) {
		rd += (is[d] - y[d]) * (v[d] - y[d]);
		dd += (v[d] - y[d]) * (v[d] - y[d]);
	}
	return dd > 0 ? fmin(fmax(rd / dd, least), 1) : 0;
}

/* The share of slot a if its key is token c's. */
static double share_of(const token_query *q, int h, int64_t a, int64_t c)
{
	const double *s = q->s + h * q->S, p = q->p[h * q->S + a], grown = p * exp(fmin(s[c] - s[a], 500));

	return (grown - p) / (1 - p + grown);
}

/* The unmodified operation's output of a head. */
static const double *unmodified_head(const token_query *q, int h)
{
	return q->output == VN_ATTN_CONTEXT ? q->y + h * width_of(q)
	                                    : (q->output == VN_ATTN_SCORES ? q->s : q->p) + h * q->S;
}

/* Writes what the step's output, (H,K) or (H,S), would be with another key or value in slot a. of
 * KEY: token c's key, or (VN_HOLDS_UNKNOWN) the key that fits best. of VALUE: the value is greater
 * by `by` (G,K). in (G): the key heads with the other content; NULL: all. */
static void make_output(const token_query *q, int of, int64_t a, int64_t c, const double *by, const bool *in,
                        double *to)
{
	const int     K = width_of(q), group = heads_of(q) / key_heads(q);
	const int64_t S = q->S;

	for (int h = 0; h < heads_of(q); h++) {
		const double *p = q->p + h * S, *is = q->is + h * (q->output == VN_ATTN_CONTEXT ? K : S);
		if (in && !in[h / group]) {
			const int64_t n = q->output == VN_ATTN_CONTEXT ? K : S;
			memcpy(to + h * n, unmodified_head(q, h), (size_t)n * sizeof *to);
		} else if (q->output == VN_ATTN_CONTEXT && of == VALUE) {
			for (int d = 0; d < K; d++)
				to[h * K + d] = q->y[h * K + d] + p[a] * by[h / group * K + d];
		} else if (q->output == VN_ATTN_CONTEXT) {
			with_share(q, h, a, c == VN_HOLDS_UNKNOWN ? best_share(q, h, a) : share_of(q, h, a, c), to + h * K);
		} else if (q->output == VN_ATTN_SCORES) {
			memcpy(to + h * S, q->s + h * S, (size_t)S * sizeof *to);
			to[h * S + a] = c == VN_HOLDS_UNKNOWN ? is[a] : q->s[h * S + c];
		} else {
			const double w = share_of(q, h, a, c == VN_HOLDS_UNKNOWN ? a : c),
						 share = c == VN_HOLDS_UNKNOWN ? is[a] : p[a] + w * (1 - p[a]);
			for (int64_t j = 0; j < S; j++)
				to[h * S + j] = j == a ? share : p[j] * (1 - share) / (1 - p[a]);
		}
	}
}

static int64_t count_of(const token_query *q)
{
	return heads_of(q) * (q->output == VN_ATTN_CONTEXT ? width_of(q) : q->S);
}

/* The nmse that is left, in floors. room: (count_of) */
static double left_with(const token_query *q, int of, int64_t a, int64_t c, const double *by, const bool *in,
                        double *room)
{
	double dd = 0;

	make_output(q, of, a, c, by, in, room);
	for (int64_t i = 0; i < count_of(q); i++)
		dd += (room[i] - q->is[i]) * (room[i] - q->is[i]);
	return dd / q->size / q->x->unmodified.residual.floor;
}

/* Writes by how much slot a's value must be greater, (G,K), to fit all steps best. Returns true if
 * every key head that some query shows is shown by at least two, and some head is. */
static bool best_value(const token_query *q, int n, int64_t a, double *by)
{
	const int K = width_of(q), group = heads_of(q) / key_heads(q);
	bool      any = false, many = true;

	for (int g = 0; g < key_heads(q); g++) {
		double *to = by + g * K, pp = 0;
		int     tell = 0;
		memset(to, 0, (size_t)K * sizeof *to);
		for (int i = 0; i < n; i++)
			for (int h = g * group; h < (g + 1) * group; h++) {
				const double p = q[i].p[h * q[i].S + a];
				pp += p * p;
				for (int d = 0; d < K; d++)
					to[d] += p * (q[i].is[h * K + d] - q[i].y[h * K + d]);
			}
		for (int d = 0; d < K; d++)
			to[d] = pp > 0 ? to[d] / pp : 0;
		for (int i = 0; i < n; i++)
			for (int h = g * group; h < (g + 1) * group; h++) {
				const double p = q[i].p[h * q[i].S + a];
				tell += p * p * dot_product(to, to, K) >
				        TELLS * q[i].x->unmodified.residual.floor * q[i].size / heads_of(q);
			}
		any = any || tell;
		many = many && tell != 1;
	}
	return any && many;
}

/* ---- which slot, and what it holds ----------------------------------------------------------- */

typedef struct slot_search {
	int     of;
	int64_t at, holds;
	double  left; /* in floors, of the step with the largest error left */
	int     others;
	double *by; /* (G,K) */
	bool    in[VN_HEADS_MOST];
	bool    some; /* only in the key heads of `in` */
} slot_search;

/* The largest error left in any step, in floors. Stops at the first step that leaves more than
 * `enough`. */
static double worst_error(const token_query *q, int n, int of, int64_t a, int64_t c, const double *by, const bool *in,
                          double enough, double *room)
{
	double most = 0;

	for (int i = 0; i < n && most < (double)INFINITY && most <= enough; i++) {
		const double left = left_with(&q[i], of, a, c, by, in, room);
		most = left > most || isnan(left) ? (isnan(left) ? (double)INFINITY : left) : most;
	}
	return most;
}

/* Finds the slot whose key (or value) is another token's or unknown. by, room: room. */
static slot_search find_slot(const token_query *q, int n, int of, double *by, double *room)
{
	int64_t     S = q[0].S;
	slot_search best = { .of = of, .at = -1, .holds = VN_HOLDS_UNKNOWN, .left = (double)INFINITY, .by = by };

	for (int i = 1; i < n; i++)
		S = q[i].S < S ? q[i].S : S;
	for (int64_t a = 0; a < S; a++) {
		if (of == VALUE && !best_value(q, n, a, by))
			continue;
		const double left = worst_error(q, n, of, a, VN_HOLDS_UNKNOWN, by, NULL,
		                                fmax(best.left, APART * VN_LOCAL_LIMIT), room);
		if (left < best.left) {
			best.left = left;
			best.at = a;
		}
		best.others += left <= APART * VN_LOCAL_LIMIT;
	}
	best.others -= best.left <= APART * VN_LOCAL_LIMIT;
	if (best.at >= 0 && of == VALUE)
		best_value(q, n, best.at, by);
	return best;
}

/* Writes by how much the value of slot a is greater if it is token c's. */
static void value_of(const token_query *q, int64_t a, int64_t c, double *by)
{
	const int64_t n = (int64_t)key_heads(q) * width_of(q);

	for (int64_t i = 0; i < n; i++)
		by[i] = q->v[c * n + i] - q->v[a * n + i];
}

/* Finds the token whose key or value slot s holds: sets s's `holds`, `left` and `by`. `others`: how
 * many other tokens fit as well. by: (G,K) room. A later token is in the cache only of later
 * steps. */
static void find_holder(const token_query *q, int n, slot_search *s, double *by, double *room)
{
	int64_t     S = q[0].S;
	slot_search best = *s;

	best.left = (double)INFINITY;
	best.others = 0;
	for (int i = 1; i < n; i++)
		S = q[i].S < S ? q[i].S : S;
	for (int64_t c = 0; c < S; c++) {
		if (c == s->at)
			continue;
		if (s->of == VALUE)
			value_of(q, s->at, c, by);
		const double left = worst_error(q, n, s->of, s->at, c, by, s->some ? s->in : NULL,
		                                fmax(best.left, VN_LOCAL_LIMIT), room);
		best.others += left <= VN_LOCAL_LIMIT;
		if (left < best.left) {
			best.left = left;
			best.holds = c;
		}
	}
	best.others -= best.left <= VN_LOCAL_LIMIT;
	if (!(best.left <= VN_LOCAL_LIMIT || best.left <= APART * s->left))
		return;
	*s = best;
	if (s->of == VALUE)
		value_of(q, s->at, s->holds, s->by);
}

/* Finds the slot that holds another token's value, where too few queries show the value by itself.
 * by, room: room. */
static slot_search find_pair(const token_query *q, int n, double *by, double *room)
{
	slot_search best = { .of = VALUE, .at = -1, .holds = VN_HOLDS_UNKNOWN, .left = (double)INFINITY, .by = by };
	int64_t     S = q[0].S;

	for (int i = 1; i < n; i++)
		S = q[i].S < S ? q[i].S : S;
	for (int64_t a = 0; S * S <= PAIRS && a < S; a++)
		for (int64_t c = 0; c < S; c++) {
			if (c == a)
				continue;
			value_of(q, a, c, by);
			const double left = worst_error(q, n, VALUE, a, c, by, NULL, fmax(best.left, APART * VN_LOCAL_LIMIT), room);
			best.others += left <= APART * VN_LOCAL_LIMIT;
			if (left < best.left) {
				best.left = left;
				best.at = a;
				best.holds = c;
			}
		}
	best.others -= best.left <= APART * VN_LOCAL_LIMIT;
	if (best.at >= 0)
		value_of(q, best.at, best.holds, by);
	return best;
}

/* Finds the key heads whose results are wrong in some step. Returns true if these are some heads,
 * but not all. */
static bool find_heads(const token_query *q, int n, bool *in)
{
	const int G = key_heads(q), group = heads_of(q) / G;
	int       some = 0;

	for (int g = 0; g < G && G <= VN_HEADS_MOST; g++) {
		in[g] = false;
		for (int i = 0; i < n; i++) {
			const int64_t w = q[i].output == VN_ATTN_CONTEXT ? width_of(q) : q[i].S;
			double        dd = 0;
			for (int h = g * group; h < (g + 1) * group; h++)
				for (int64_t k = 0; k < w; k++) {
					const double d = q[i].is[h * w + k] - unmodified_head(&q[i], h)[k];
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
static void find_holder_in_heads(const token_query *q, int n, slot_search *s, double *other, double *room)
{
	const int64_t values = (int64_t)key_heads(q) * width_of(q);
	slot_search   all = *s, some = *s;
	double       *unknown = malloc((size_t)values * sizeof *unknown + 1);

	if (unknown)
		memcpy(unknown, s->by, (size_t)values * sizeof *unknown);
	if (s->holds == VN_HOLDS_UNKNOWN)
		find_holder(q, n, &all, other, room);
	some.some = unknown && find_heads(q, n, some.in);
	if (some.some) {
		double *by = some.by;
		some.by = unknown;
		find_holder(q, n, &some, other, room);
		/* Content that is no token's may be wrong in the other heads too: a head that hardly reads
		 * the slot does not show it. */
		const bool better = some.holds != VN_HOLDS_UNKNOWN &&
		                    (all.holds == VN_HOLDS_UNKNOWN ||
		                     (s->holds == VN_HOLDS_UNKNOWN && all.left > VN_EXPLAIN_LEAST &&
		                      some.left * VN_EXPLAIN_APART < all.left));
		if (better)
			memcpy(by, unknown, (size_t)values * sizeof *by);
		some.by = by;
		*s = better ? some : all;
	} else {
		*s = all;
	}
	free(unknown);
}

static vn_status try_slot(vn_explain_trial *t, const token_query *q, const slot_search *s, vn_error *err)
{
	vn_hypothesis h = { .finding = VN_FINDING_CACHE_ONE_ALONE,
		                .node = (int)(q->n - t->site->plan->node),
		                .change = { .kind = VN_BY_ONE_CACHED,
		                            .one_cached = { (int)s->at, s->of, (int)s->holds, s->others } } };
	vn_made       made = { 0 };
	vn_status     st = vn_recompute_at(t->recompute, q->x->checkpoint, err);

	if (st || (st = vn_made_room(t, &made, err))) {
		vn_made_finish(&made);
		return st;
	}
	t->x = q->x;
	t->elements = t->c->result.checkpoint[q->x->checkpoint].m.n;
	t->x->fitted = t->x->fitted || !t->x->n_fit;
	for (int i = 0; s->some && i < heads_of(q) && heads_of(q) <= VN_HEADS_MOST; i++) {
		h.part[i] = s->in[i / (heads_of(q) / key_heads(q))];
		h.heads = heads_of(q);
	}
	make_output(q, s->of, s->at, s->holds, s->by, s->some ? s->in : NULL, (double *)made.fine.data);
	vn_made_round(t, &made);
	if (!(st = vn_score_numbers(t, &made.own, &made.fine, &h, err)))
		vn_trial_keep_beside_unmodified(t, &h);
	vn_made_finish(&made);
	return st;
}

static vn_status try_best(vn_explain_trial *t, const token_query *q, int n, double *room, double *by, double *other,
                          vn_error *err)
{
	slot_search key = find_slot(q, n, KEY, by, room), value = { .left = (double)INFINITY };
	vn_status   st = VN_OK;

	if (q->output == VN_ATTN_CONTEXT && !((value = find_slot(q, n, VALUE, by, room)).left <= VN_LOCAL_LIMIT))
		value = find_pair(q, n, by, room);
	slot_search *best = value.left < key.left ? &value : &key;
	/* Another slot, or the other of the two, fits as well: these numbers do not tell. */
	const double second = value.left < key.left ? key.left : value.left;
	if (best->at < 0 || !(best->left <= VN_LOCAL_LIMIT) || best->others || second <= APART * VN_LOCAL_LIMIT)
		return VN_OK;
	best->by = by;
	find_holder_in_heads(q, n, best, other, room);
	for (int i = 0; !st && i < n; i++)
		st = try_slot(t, &q[i], best, err);
	return st;
}

vn_status vn_explain_one_slot(vn_explain_trial *t, vn_explanation **x, int n, vn_error *err)
{
	token_query *q = calloc((size_t)n + 1, sizeof *q);
	bool         clear = false, fits = q && n > 0;
	int          some = 0;
	vn_status    st = q ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %d steps", n);

	for (int i = 0; i < n; i++)
		clear = clear || x[i]->unmodified.limit_fraction > CLEAR;
	for (int i = 0; !st && clear && fits && i < n; i++)
		if (!*x[i]->why_not)
			st = open_query(t, x[i], &q[some++], &fits, err);
	if (!st && clear && fits && some) {
		const int64_t values = (int64_t)key_heads(q) * width_of(q);
		int64_t       most = 0;
		for (int i = 0; i < some; i++)
			most = count_of(&q[i]) > most ? count_of(&q[i]) : most;
		double *room = malloc((size_t)(most + 2 * values) * sizeof *room + 1);
		st = room ? try_best(t, q, some, room, room + most, room + most + values, err)
		          : vn_fail(err, VN_ERR_NOMEM, "no memory for keys and values");
		free(room);
	}
	for (int i = 0; i < some; i++)
		close_query(&q[i]);
	free(q);
	return st;
}
