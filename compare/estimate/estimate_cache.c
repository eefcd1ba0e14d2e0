/* estimate_cache.c: see estimate.h. Numbers that the catalogue does not list: slots moved by
 * several, blocks of another size exchanged in pairs or in any order, keys of padding. A few
 * queries select the likely mistake, which is then computed in full. */
#include "compare/estimate/estimate.h"
#include "compare/trial/attend.h"
#include "compare/trial/fit.h"
#include "compare/trial/score.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>

enum { QUERIES_TESTED = 4, HEADS = 8 }; /* queries that are tested, heads of each */
enum { MOVED = 64, MOST_BLOCK = 256 };  /* the most slots that moved; the most tokens of a block */
enum { PADDING = 1 << 20 };
#define CACHE_LEAVES 0.05 /* of the error: the right answer leaves less */

/* What a slot holds. `of` is numbered as the constant cache_of of VN_OP_ATTENTION: keys and values
 * (0), keys (1), values (2). */
typedef struct slot_content {
	int form, of, by;
} slot_content;

typedef struct keys {
	vn_case       *t;
	const vn_node *n;
	vn_attend_case a;
	int            node;
	int64_t        S, R, row[VN_BLOCKS_MOST]; /* tokens; the rows of the checkpoint that are tested */
	int            H, head[HEADS];
	double        *s;        /* (R, H, S): the score of each query and token */
	double        *is, *own; /* the checkpoint: found, expected */
	double         error;    /* sum of (is - own)^2 in the rows and heads that are tested */
	double        *e;        /* (S): room */
	int64_t       *slot;     /* (2, S): the token that each slot of keys, and of values, holds; -1: none */
} keys;

static int key_head(const keys *x, int head)
{
	return head / (x->n->c.attention.heads / x->n->c.attention.kv_heads);
}

/* Where head h of row r begins in the checkpoint. */
static int64_t index_of(const keys *x, int64_t r, int h)
{
	return (x->row[r] * x->n->c.attention.heads + x->head[h]) * x->n->c.attention.head_dim;
}

/* The first and the last key that the query of row r sees. */
static void seen_keys(const keys *x, int64_t r, int64_t *first, int64_t *last)
{
	*last = x->t->site->first + x->row[r];
	*first = vn_attention_first_key(&x->n->c, *last);
}

/* ---- the queries and keys that are tested ---------------------------------------------------- */

/* Computes the scores and the error of the queries in x->row. */
static void pick_queries(keys *x)
{
	const int K = x->n->c.attention.head_dim, G = x->n->c.attention.kv_heads;

	free(x->s);
	x->s = vn_alloc((size_t)(x->R * x->H * x->S), sizeof *x->s);
	x->error = 0;
	for (int64_t r = 0; r < x->R; r++)
		for (int h = 0; h < x->H; h++) {
			const int64_t at = index_of(x, r, h);
			const double *q = x->a.q + at + x->t->site->first * x->n->c.attention.heads * K;
			x->error += vn_square_distance(x->is + at, x->own + at, K);
			for (int64_t j = 0; j < x->S; j++)
				x->s[(r * x->H + h) * x->S + j] = vn_attend_score(
					x->n, vn_dot(q, x->a.k + (j * G + key_head(x, x->head[h])) * K, K));
		}
}

static void open_keys(keys *x)
{
	x->n = x->a.n;
	x->S = x->a.S;
	x->H = x->n->c.attention.heads < HEADS ? x->n->c.attention.heads : HEADS;
	for (int h = 0; h < x->H; h++)
		x->head[h] = x->n->c.attention.heads * h / x->H;
	x->is = vn_case_all_doubles_of(&x->t->site->cand);
	x->own = vn_case_all_doubles_of(&x->t->own);
	x->e = vn_alloc((size_t)x->S, sizeof *x->e);
	x->slot = vn_alloc((size_t)(2 * x->S), sizeof *x->slot);
	pick_queries(x);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Slots hold that. */
static void fill_keys(keys *x, slot_content as)
{
	for (int values = 0; values < 2; values++)
		for (int64_t j = 0; j < x->S; j++) {
			const int64_t from = as.form == VN_CACHE_NEXT   ? j + as.by
			                     : as.form == VN_CACHE_PAST ? j - as.by
			                                                : (j / as.by ^ 1) * as.by + j % as.by;
			x->slot[values * x->S + j] = as.of && as.of != 1 + values ? j : from < x->S ? from : -1;
		}
}

/* The error of one query with the slots as they are in x. */
static double error_of(const keys *x, int64_t r, int h)
{
	const int     K = x->n->c.attention.head_dim, G = x->n->c.attention.kv_heads, g = key_head(x, x->head[h]);
	const double *s = x->s + (r * x->H + h) * x->S;
	const double  sink = x->a.sink[x->head[h]];
	double        top = sink, sum, dd = 0;
	int64_t       first, last;

	seen_keys(x, r, &first, &last);
	for (int64_t j = first; j <= last; j++) {
		const int64_t from = x->slot[j];
		x->e[j] = from < 0 ? 0 : s[from];
		top = fmax(top, x->e[j]);
	}
	sum = exp(sink - top);
	for (int64_t j = first; j <= last; j++)
		sum += x->e[j] = exp(x->e[j] - top);
	for (int d = 0; d < K; d++) {
		double y = 0;
		for (int64_t j = first; j <= last; j++) {
			const int64_t from = x->slot[x->S + j];
			y += from < 0 ? 0 : x->e[j] * x->a.v[(from * G + g) * K + d];
		}
		y = y / sum - x->is[index_of(x, r, h) + d];
		dd += y * y;
	}
	return dd;
}

/* Do these slot contents explain the error? Stops as soon as they do not. */
static bool tells_apart(keys *x, slot_content as)
{
	double left = 0;

	fill_keys(x, as);
	for (int64_t r = 0; r < x->R; r++)
		for (int h = 0; h < x->H; h++)
			if (!((left += error_of(x, r, h)) <= CACHE_LEAVES * x->error))
				return false;
	return true;
}

static void try_held(keys *x, slot_content as)
{
	vn_trial h = { .finding = as.form == VN_CACHE_SWAPPED ? VN_FINDING_BLOCKS_EXCHANGED : VN_FINDING_SLOTS_MOVED,
		           .node = x->node };

	vn_trial_constant_put(&h, "cache_form", as.form);
	vn_trial_constant_put(&h, "cache_of", as.of);
	vn_trial_constant_put(&h, "cache_block", as.by);
	vn_try(x->t, &h);
}

static void fit_slots(keys *x)
{
	static const int forms[] = { VN_CACHE_NEXT, VN_CACHE_PAST, VN_CACHE_SWAPPED };

	for (int of = 0; of < 3; of++)
		for (int form = 0; form < 3; form++)
			for (int by = 1; by < x->S && by <= (form < 2 ? MOVED : MOST_BLOCK); by += form < 2 ? 1 : by) {
				const slot_content as = { forms[form], of, by };
				if (!vn_case_answered(x->t) && tells_apart(x, as))
					try_held(x, as);
			}
}

/* ---- a table of blocks ----------------------------------------------------------------------- */

/* Puts the tokens of block `from` into block i: keys, values or both. */
static void put_block(keys *x, const vn_block_table *b, int i, int from)
{
	for (int values = 0; values < 2; values++)
		for (int64_t j = (int64_t)i * b->block;
		     j < x->S && j < (int64_t)(i + 1) * b->block && (!b->of || b->of == 1 + values); j++) {
			const int64_t token = j + (int64_t)(from - i) * b->block;
			x->slot[values * x->S + j] = token < x->S ? token : -1;
		}
}

static double row_error(const keys *x, int64_t r)
{
	double sum = 0;
	for (int h = 0; h < x->H; h++)
		sum += error_of(x, r, h);
	return sum;
}

/* The last query of a block sees that block and those before it, so it identifies the block once
 * the earlier ones are known. Returns false if there is none. x: one row per block. */
static bool read_table(keys *x, vn_block_table *b)
{
	const int K = x->n->c.attention.head_dim;
	bool      moved = false;

	for (int i = 0; i < b->n; i++) {
		double size = 0, least = (double)INFINITY, own = 0;
		put_block(x, b, i, i);
		own = row_error(x, i);
		for (int h = 0; h < x->H; h++)
			for (int d = 0; d < K; d++)
				size += x->is[index_of(x, i, h) + d] * x->is[index_of(x, i, h) + d];
		const double enough = VN_PEAK_LIMIT * x->t->x->unmodified.residual.floor_token * size;
		b->from[i] = (short)i;
		/* A sharp attention gives little weight to a block, so an arrangement within the floor
		 * may not be the best yet. */
		for (int k = 0; k < b->n && !(own <= x->t->x->unmodified.residual.floor * size); k++) {
			put_block(x, b, i, k);
			const double e = row_error(x, i);
			if (e < least) {
				least = e;
				b->from[i] = (short)k;
			}
		}
		if (own <= VN_LOCAL_LIMIT * least)
			b->from[i] = (short)i;
		if (!(own <= enough) && !(least <= enough) && !(least <= CACHE_LEAVES * CACHE_LEAVES * own))
			return false;
		put_block(x, b, i, b->from[i]);
		moved = moved || b->from[i] != i;
	}
	return moved;
}

/* In a call that holds the whole sequence, every block has a query that sees it as its last
 * block. */
static void fit_table(keys *x)
{
	vn_case *t = x->t;

	if (t->site->first || t->site->cand.shape.dim[0] != x->S || x->n->c.attention.window)
		return;
	for (int B = MOST_BLOCK; B >= 4 && !vn_case_answered(t); B /= 2) { /* as few blocks as will do */
		vn_block_table b = { .block = B, .n = (int)((x->S + B - 1) / B) };
		if (b.n < 2 || b.n > VN_BLOCKS_MOST)
			continue;
		x->R = b.n;
		for (int i = 0; i < b.n; i++)
			x->row[i] = (i + 1) * (int64_t)B < x->S ? (i + 1) * (int64_t)B - 1 : x->S - 1;
		pick_queries(x);
		for (b.of = 0; b.of < 3 && !vn_case_answered(t); b.of++) {
			for (int64_t j = 0; j < x->S; j++)
				x->slot[j] = x->slot[x->S + j] = j;
			if (read_table(x, &b))
				vn_try(t, &VN_TRIAL(BLOCKS_REORDERED, x->node, .kind = VN_BY_BLOCKS, .blocks = b));
		}
	}
}

/* ---- padding --------------------------------------------------------------------------------- */

void vn_fit_sink(vn_case *t, int node, double n)
{
	const bool       padding = vn_case_answered(t);
	vn_trial         exact = VN_TRIAL(SOFTMAX_SINK, node, .kind = VN_BY_ATTEND, .attend.kind = VN_ATTEND_SINK);
	vn_round_numbers written = { .x = log(n), .most = padding ? 2 : 4, .near = true };
	bool             is_written = false;
	exact.applied.attend.number = log(n);
	vn_trial h = exact;
	vn_score(t, &exact);
	const double most = VN_EXPLAIN_APART * fmax(exact.limit_fraction, VN_EXPLAIN_LEAST / VN_LOCAL_LIMIT);

	while (!is_written && vn_next_round_number(&written, &h.applied.attend.number)) {
		vn_score(t, &h);
		if ((is_written = h.limit_fraction < most))
			exact = h;
	}
	if (!isnan(exact.limit_fraction) && (is_written || !padding))
		vn_case_keep(t->x, &exact);
}

/* Keys of padding have the score 0 and their values are 0: with E the sum of a query's
 * exponentials, n padding keys scale its context by E / (E + n). */
static void fit_padding(keys *x)
{
	const int K = x->n->c.attention.head_dim;
	double    left = 0, gu = 0, gg = 0;
	int64_t   first, last;

	for (int64_t r = 0; r < x->R; r++)
		for (int h = 0; h < x->H; h++) {
			const double *s = x->s + (r * x->H + h) * x->S, *own = x->own + index_of(x, r, h),
						 *is = x->is + index_of(x, r, h);
			double E = exp(x->a.sink[x->head[h]]), oo = 0, oi = 0;
			seen_keys(x, r, &first, &last);
			for (int64_t j = first; j <= last; j++)
				E += exp(s[j]);
			for (int d = 0; d < K; d++) {
				oo += own[d] * own[d];
				oi += own[d] * is[d];
			}
			for (int d = 0; d < K; d++)
				left += (is[d] - oi / oo * own[d]) * (is[d] - oi / oo * own[d]);
			gu += (oo / oi - 1) / E;
			gg += 1 / (E * E);
		}
	const double n = gu / gg;
	if (!(left <= CACHE_LEAVES * x->error) || !(n > 0 && n < PADDING))
		return;
	vn_trial h = { .finding = VN_FINDING_KEYS_OF_PADDING, .node = x->node };
	vn_trial_constant_put(&h, "padding", 0);
	if (n >= 0.5)
		vn_fit_whole(x->t, &h, llround(n), 1, PADDING);
	vn_fit_sink(x->t, x->node, n);
}

/* Keys alone, or values alone, of the call's own tokens are not in the cache yet;
 * both are faults of the catalogue. */
static void fit_not_cached(vn_case *t, int node)
{
	static const int forms[] = { VN_CACHE_LATE, VN_CACHE_STALE };

	for (int of = 1; of <= 2; of++)
		for (int form = 0; form < 2; form++) {
			vn_trial h = VN_TRIAL(NEW_NOT_CACHED, node, .later = true);
			vn_trial_constant_put(&h, "cache_block", 1);
			vn_trial_constant_put(&h, "cache_of", of);
			vn_trial_constant_put(&h, "cache_form", forms[form]);
			vn_try(t, &h);
		}
}

/* Tokens of later calls are cached several slots early or late. */
enum { NEW_MOVED = 8 };

static void fit_new_slots(vn_case *t, int node)
{
	const vn_step *step;
	const int64_t  from = vn_recording_steps(t->opened->cand, &step) > 1 ? step[1].position : 0,
				  most[] = { from, t->site->tokens - from }; /* farther late, none is read */

	for (int late = 0; late < 2; late++)
		for (int by = 2; by <= NEW_MOVED && by <= most[late]; by++)
			for (int of = 0; of < 3 && !vn_case_answered(t); of++) {
				vn_trial h = { .finding = VN_FINDING_NEW_SLOTS_MOVED,
					           .node = node,
					           .applied = {
								   .kind = VN_BY_SLOTS, .later = true, .slots = { of, late ? by : -by, false } } };
				vn_try(t, &h);
			}
}

void vn_estimate_new_slots(vn_case *t)
{
	/* If only the newest token is late, it is not in the cache yet (C5). */
	static const struct {
		int  by;
		bool newest;
	} moved[] = { { -1, false }, { -1, true }, { 1, false } };
	const vn_plan *p = t->site->plan;
	const int      node = vn_case_node(t);
	const vn_step *s = vn_case_step(t);

	if (p->node[node].op != VN_OP_ATTENTION || !s || !s->position || t->part || t->brief ||
	    t->consumed == VN_CONSUMED_OTHERS || t->x->unmodified.residual.bad)
		return;
	fit_not_cached(t, node);
	for (int of = 0; of < 3; of++)
		for (size_t i = 0; i < sizeof moved / sizeof *moved; i++) {
			const vn_applied_slots slots = { of, moved[i].by, moved[i].newest };
			vn_try(t, &VN_TRIAL(NEW_SLOTS_MOVED, node, .kind = VN_BY_SLOTS, .later = true, .slots = slots));
		}
	if (!vn_case_answered(t))
		fit_new_slots(t, node);
}

void vn_estimate_keys(vn_case *t)
{
	const vn_plan *p = t->site->plan;
	const int      node = vn_case_node(t);
	const vn_node *n = &p->node[node];
	keys           x = { .t = t, .node = node };

	if (n->op != VN_OP_ATTENTION || n->out[VN_ATTN_CONTEXT] != t->site->target || !n->c.attention.causal ||
	    n->c.attention.value_dim || t->part || t->x->unmodified.residual.bad)
		return;
	const int64_t T = t->site->cand.shape.dim[0];
	x.R = T < QUERIES_TESTED ? T : QUERIES_TESTED;
	for (int64_t r = 0; r < x.R; r++) /* at equal distances up to the last token; without the first one if several */
		x.row[r] = (T - 1) * (r + 1) / x.R;
	if (vn_attend_open(&x.a, t, node)) {
		open_keys(&x);
		fit_slots(&x);
		if (!vn_case_answered(t))
			fit_padding(&x);
		if (!vn_case_answered(t))
			fit_table(&x);
		VN_FREE(x.s, x.e, x.is, x.own, x.slot);
	}
	vn_attend_close(&x.a);
}
