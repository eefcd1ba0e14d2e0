/* estimate_attention.c: see estimate.h.
 *
 * A sliding window, also with first keys that stay visible: with `keys` first keys and a window of
 * `width`, the first token that loses a key is at keys + width. With few digits that token may
 * still come out right; then the first wrong one is later.
 *
 * For mistakes that no constant expresses, a few queries select the likely one, which is then
 * computed in full.
 */
#include "compare/estimate/estimate.h"
#include "compare/trial/attend.h"
#include "compare/trial/fit.h"
#include "compare/trial/score.h"
#include "compare/trial/search.h"

#include "capture/view/batched.h"
#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>

/* ---- the first keys (attention sinks) -------------------------------------------------------- */

enum { MOST = 128, ROUNDS = 4 }; /* the most first keys that stay visible; rounds of fitting, each fits both */
#define GOOD          0.25       /* a window that uses no more of the limit needs no second number */
#define WINDOW_LEAVES 0.5        /* the most that two nearly right numbers leave, of the error */

typedef struct sinks {
	int64_t width, keys;
	double  error; /* nmse */
} sinks;

/* Both constants in one trial; the one that is searched for comes last. */
static vn_trial with_both_numbers(const vn_trial *of, const sinks *s, bool width_last)
{
	vn_trial h = *of;

	vn_trial_constant_put(&h, width_last ? "sinks" : "window", (double)(width_last ? s->keys : s->width));
	vn_trial_constant_put(&h, width_last ? "window" : "sinks", (double)(width_last ? s->width : s->keys));
	return h;
}

/* The best value of one number in a range, with the other fixed. */
static void improve_sinks(vn_case *t, const vn_trial *of, sinks *s, bool width, vn_whole_range in)
{
	vn_trial h = with_both_numbers(of, s, width);

	if (in.high < in.low)
		return;
	const vn_least best = vn_case_best_whole(t, &h, in.low, in.high);
	if (!(best.error < s->error))
		return;
	*(width ? &s->width : &s->keys) = (int64_t)best.x;
	s->error = best.error;
}

/* Where the search begins: numbers that add up to the first token in error, or the model's own
 * window. With a single token, any window. */
static void begin_search(vn_case *t, const vn_trial *of, int64_t first, sinks *best)
{
	const int64_t own = t->site->plan->node[of->node].c.attention.window;
	const bool    single = t->site->cand.shape.dim[0] == 1 || t->site->first == first;

	*best = (sinks) { .error = (double)INFINITY };
	for (int64_t keys = 1; keys <= MOST && keys < first; keys *= 2) {
		sinks s = { own && first >= own ? own : first - keys, keys, (double)INFINITY };
		improve_sinks(t, of, &s, true, (vn_whole_range) { single ? 1 : s.width, s.width });
		if (s.error < best->error)
			*best = s;
	}
}

static void fit_sinks(vn_case *t, const vn_trial *of, int64_t first)
{
	const double  plain = vn_case_answered(t) ? t->x->by[0].limit_fraction : (double)INFINITY;
	const int64_t tokens = t->site->tokens;
	double        before = (double)INFINITY;
	sinks         s;

	if (t->brief || plain <= GOOD || first < 2)
		return;
	begin_search(t, of, first, &s);
	if (!(s.error < WINDOW_LEAVES * t->x->unmodified.residual.local))
		return;
	for (int i = 0; i < ROUNDS && s.error < before; i++) {
		before = s.error;
		improve_sinks(t, of, &s, false, (vn_whole_range) { 1, MOST < first ? MOST : first - 1 });
		improve_sinks(t, of, &s, true, (vn_whole_range) { 1, first });
	}
	/* At least two of several queries must lose keys: one query shows which keys it lost, not
	 * that the window moves. */
	if (t->site->cand.shape.dim[0] > 1 && tokens - s.width - s.keys < 2)
		return;
	vn_trial h = with_both_numbers(of, &s, true), other = with_both_numbers(of, &s, false);
	vn_score(t, &h);
	if (!(h.limit_fraction <= 1) || !(fmax(h.limit_fraction, VN_EXPLAIN_LEAST / 4) * VN_EXPLAIN_APART < plain))
		return;
	const vn_whole_range widths = vn_case_as_good(t, &h, s.width, (vn_whole_range) { 1, tokens }),
						 keys = vn_case_as_good(t, &other, s.keys, (vn_whole_range) { 0, MOST });
	h.first = widths.low, h.last = widths.high;
	h.first_also = keys.low, h.last_also = keys.high;
	h.finding = VN_FINDING_WINDOW_AND_SINKS;
	vn_case_keep(t->x, &h);
}

/* ---- a window -------------------------------------------------------------------------------- */

/* Tokens before the window's end see all keys, so the window is no wider than the first token in
 * error. If the window is wider than the model's own, only that is known. */
void vn_estimate_window(vn_case *t, const vn_trial *at)
{
	const int64_t own = t->site->plan->node[at->node].c.attention.window;
	int64_t       first, last;

	vn_case_rows_off(t, NULL, &first, &last);
	if (first < 0 || vn_axes_find(t->site->axes, "token") < 0)
		return;
	first += t->site->first;
	/* With a narrower window the first tokens affected may still come out right, because they
	 * give little weight to what they lost. */
	for (int narrower = !(own && first >= own); narrower < 2 && !vn_case_answered(t); narrower++) {
		vn_trial      one = *at;
		const int64_t low = narrower ? 1 : own + 1, high = !narrower             ? t->site->tokens
		                                                   : own && first >= own ? own - 1
		                                                                         : first;
		one.finding = VN_FINDING_WINDOW;
		vn_trial_constant_put(&one, "window", (double)low);
		if (high < low)
			continue;
		const vn_least best = vn_case_best_whole(t, &one, low, high);
		if (isfinite(best.error))
			vn_fit_whole(t, &one, (int64_t)best.x, low, high);
	}
	fit_sinks(t, at, first);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The next row from `row` on that is right; T: none. */
static int64_t next_right(const bool *off, int64_t T, int64_t row)
{
	while (row < T && off[row])
		row++;
	return row;
}

/* The last query of each block is right, so the first one that is, is that of the first block; in a
 * later call, the next one is a block behind. */
void vn_estimate_blocks(vn_case *t, const vn_trial *at)
{
	enum { MOST_BLOCK = 4096 };
	const int     axis = vn_axes_find(t->site->axes, "token");
	const int64_t T = axis < 0 ? 0 : t->site->cand.shape.dim[axis];
	int64_t       first, last;
	vn_trial      h = *at;

	if (t->part || axis < 0 || !t->site->plan->node[at->node].c.attention.causal)
		return;
	bool *off = vn_alloc((size_t)T, sizeof *off);
	vn_case_rows_off(t, off, &first, &last);
	const int64_t right = next_right(off, T, 0), next = t->site->first ? next_right(off, T, right + 1) : T;
	const int64_t end = t->site->first + right + 1, block = next < T ? next - right : end;
	free(off);
	h.finding = VN_FINDING_BLOCKS_SEEN;
	vn_trial_constant_put(&h, "blocks", (double)block);
	if (first >= 0 && block > 1 && right + 1 < T && block <= MOST_BLOCK && end % block == 0)
		vn_try(t, &h);
}

/* Of a prefix all queries but the last are wrong; the last of these see few keys more, and may seem
 * right. */
void vn_estimate_prefix(vn_case *t, const vn_trial *at)
{
	enum { SEEM_RIGHT = 8 };
	const int axis = vn_axes_find(t->site->axes, "token");
	int64_t   first, last;
	vn_trial  h = *at;

	if (t->part || axis < 0 || !t->site->plan->node[at->node].c.attention.causal)
		return;
	vn_case_rows_off(t, NULL, &first, &last);
	const int64_t least = t->site->first + last + 2, end = t->site->first + t->site->cand.shape.dim[axis],
				  most = least + SEEM_RIGHT < end ? least + SEEM_RIGHT : end - 1;
	h.finding = VN_FINDING_PREFIX_SEEN;
	vn_trial_constant_put(&h, "prefix", (double)least);
	if (first != 0 || most < least)
		return;
	const vn_least best = vn_case_best_whole(t, &h, least, most);
	if (isfinite(best.error))
		vn_fit_whole(t, &h, (int64_t)best.x, least, most);
}

/* Heads rolled by another number than the catalogue's. */
void vn_estimate_head_roll(vn_case *t, const vn_trial *at)
{
	enum { FARTHEST = 8 };
	static const char *const rolls[][2] = {
		{ "query_roll" }, { "key_roll" }, { "value_roll" }, { "key_roll", "value_roll" }
	};
	const vn_consts *c = &t->site->plan->node[at->node].c;

	for (size_t i = 0; i < sizeof rolls / sizeof *rolls; i++) {
		const int n = i ? c->attention.kv_heads : c->attention.heads;
		for (int by = -1; by < n - 1 && by < FARTHEST && !vn_case_answered(t); by += by < 0 ? 3 : 1) {
			vn_trial h = *at;
			h.finding = VN_FINDING_HEADS_ROLLED;
			for (int k = 0; n > 2 && k < 2 && rolls[i][k]; k++)
				vn_trial_constant_put(&h, rolls[i][k], by);
			if (n > 2)
				vn_try(t, &h);
		}
	}
}

/* ---- mistakes that no constant expresses ----------------------------------------------------- */

enum { ATTEND_QUERIES = 12 }; /* queries that are tested */
#define ALL_OF_SOFTMAX(format) .scores = format, .exps = format, .sum = format, .probs = format
enum { UNSEEN_MOST = 1 << 24 }; /* keys times keys times numbers of a row */
#define EDIT_LEAVES 0.25        /* the most that a likely mistake may leave, of the error */

typedef struct tested_attention {
	vn_case       *t;
	vn_attend_case a;
	double        *y, *is;      /* (width) each: a row as computed, as recorded */
	int64_t        T, R, width; /* width: numbers of a row, all heads */
} tested_attention;

static void row_of(const tested_attention *x, const vn_tensor *t, int64_t row, double *y)
{
	const int64_t each = vn_attend_width(&x->a);

	for (int h = 0; h < x->a.n->c.attention.heads; h++)
		vn_tensor_numbers(t, vn_attend_at(&x->a, x->T, row, h), each, y + h * each);
}

/* The squared error of the selected rows under the edit; NULL: with the unmodified operation. */
static double left_with(tested_attention *x, const vn_applied_attention *edit)
{
	double left = 0;

	for (int64_t r = 0; r < x->R; r++) {
		const int64_t row = x->R < 2 ? 0 : (x->T - 1) * (r + 1) / x->R;
		if (edit)
			vn_attend_row(&x->a, edit, x->t->site->first + row, NULL, x->y);
		else
			row_of(x, &x->t->own, row, x->y);
		row_of(x, &x->t->site->cand, row, x->is);
		for (int64_t i = 0; i < x->width; i++)
			left += (x->y[i] - x->is[i]) * (x->y[i] - x->is[i]);
	}
	return left;
}

#define HEADS_FIRST(of) \
	{ VN_FINDING_HEADS_FIRST, { .kind = VN_ATTEND_HEADS_FIRST, .number = (of) } }, \
	{ \
		VN_FINDING_HEADS_FIRST, \
		{ \
			.kind = VN_ATTEND_HEADS_FIRST, .number = (of) + 8 \
		} \
	}
/* The edits that are tried. Edits of calls are tried only if the number of tokens of a call is
 * known, which is then added to them. */
static const struct {
	vn_finding           finding;
	vn_applied_attention edit;
} edits[] = {
	{ VN_FINDING_PADDING_SEEN, { .kind = VN_ATTEND_PADDING } },
	HEADS_FIRST(1),
	HEADS_FIRST(2),
	HEADS_FIRST(4),
	HEADS_FIRST(6),
	HEADS_FIRST(7),
	{ VN_FINDING_MASK_FROM_CALL, { .kind = VN_ATTEND_CALLS_FROM_ZERO } },
	{ VN_FINDING_CALLS_ALONE, { .kind = VN_ATTEND_CALLS_ALONE } },
	{ VN_FINDING_CALLS_SEE_FUTURE, { .kind = VN_ATTEND_CALLS_FUTURE } },
	{ VN_FINDING_SOFTMAX_SINK, { .kind = VN_ATTEND_SINK } }, /* softmax_one: one is added to the sum of exponentials */
	{ VN_FINDING_SUM_PLUS, { .kind = VN_ATTEND_SUM_PLUS, .number = 1 } },
	{ VN_FINDING_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_F16 } },
	{ VN_FINDING_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_BF16 } },
	{ VN_FINDING_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_F16, .probs = VN_FORMAT_F16 } },
	{ VN_FINDING_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_BF16, .probs = VN_FORMAT_BF16 } },
	{ VN_FINDING_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .exps = VN_FORMAT_F16 } },
	{ VN_FINDING_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .exps = VN_FORMAT_BF16 } },
	{ VN_FINDING_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .sum = VN_FORMAT_F16 } },
	{ VN_FINDING_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .sum = VN_FORMAT_BF16 } },
	{ VN_FINDING_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, ALL_OF_SOFTMAX(VN_FORMAT_F16) } },
	{ VN_FINDING_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, ALL_OF_SOFTMAX(VN_FORMAT_BF16) } },
	{ VN_FINDING_FROM_ZERO, { .kind = VN_ATTEND_FROM_ZERO, .exps = VN_FORMAT_F16 } },
	{ VN_FINDING_PROBS_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .probs = VN_FORMAT_F16 } },
	{ VN_FINDING_PROBS_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .probs = VN_FORMAT_BF16 } },
	{ VN_FINDING_ATTENTION_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .inputs = VN_FORMAT_TF32 } },
	{ VN_FINDING_ATTENTION_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .inputs = VN_FORMAT_TF32_AWAY } },
	{ VN_FINDING_ATTENTION_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .inputs = VN_FORMAT_TF32_CUT } },
	{ VN_FINDING_ATTENTION_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .inputs = VN_FORMAT_F16 } },
	{ VN_FINDING_ATTENTION_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .inputs = VN_FORMAT_BF16 } },
	{ VN_FINDING_CACHE_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .cache = VN_FORMAT_BF16 } },
	{ VN_FINDING_CACHE_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .cache = VN_FORMAT_INT8, .scaled = true } },
	{ VN_FINDING_CACHE_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .cache = VN_FORMAT_E4M3, .scaled = true } },
};
enum { N_EDITS = sizeof edits / sizeof *edits };

static bool is_of_calls(int i)
{
	return edits[i].edit.kind <= VN_ATTEND_CALLS_FUTURE;
}

static vn_applied_attention edit_for(int i, int call)
{
	vn_applied_attention edit = edits[i].edit;
	edit.call = is_of_calls(i) ? call : 0;
	return edit;
}

/* The edit that leaves the least error, *least. call: tokens of a call; 0: not known. */
static void find_best(tested_attention *x, int call, int *best, double *least)
{
	const vn_step *own = vn_case_step(x->t);
	const bool     later = own && own->position > 0; /* other calls read the cached keys and values */

	*best = 0;
	*least = (double)INFINITY;
	for (int i = 0; i < N_EDITS; i++) {
		const vn_applied_attention edit = edit_for(i, call);
		if (!vn_attend_applies(&x->a, &edit) || (is_of_calls(i) && !call) ||
		    (edits[i].finding == VN_FINDING_CACHE_ROUNDED && !later))
			continue;
		vn_attend_prepare(&x->a, &edit);
		const double left = left_with(x, &edit);
		*best = left < *least ? i : *best;
		*least = fmin(*least, left);
	}
}

static double error_of_sink(void *of, double keys)
{
	tested_attention          *x = of;
	const vn_applied_attention edit = { .kind = VN_ATTEND_SINK, .number = log(keys) };

	vn_attend_prepare(&x->a, &edit);
	return left_with(x, &edit);
}

static double error_of_cap(void *of, double cap)
{
	tested_attention          *x = of;
	const vn_applied_attention edit = { .kind = VN_ATTEND_CAP, .number = cap };

	vn_attend_prepare(&x->a, &edit);
	return left_with(x, &edit);
}

/* Scores with a cap, or with another one. */
static void try_cap(tested_attention *x)
{
	static const vn_range caps = { 1.0 / 16, 4096, 65, true };
	vn_trial       h = VN_TRIAL(SCORE_CAP, vn_case_node(x->t), .kind = VN_BY_ATTEND, .attend.kind = VN_ATTEND_CAP);
	const vn_least least = vn_search_scale(error_of_cap, x, caps, EDIT_LEAVES * left_with(x, NULL));

	if (isfinite(least.error))
		vn_fit_digits(x->t, &h, least.x);
}

/* A sink that probabilities show; estimate_cache.c reads its weight off a context. */
static void try_sink(tested_attention *x)
{
	static const vn_range keys = { 1.0 / 4096, 1 << 20, 65, true };

	if (x->a.output != VN_ATTN_PROBS || x->a.n->w[VN_ATTN_SINKS] >= 0)
		return;
	const vn_least least = vn_search_scale(error_of_sink, x, keys, EDIT_LEAVES * left_with(x, NULL));
	if (isfinite(least.error))
		vn_fit_sink(x->t, vn_case_node(x->t), least.x);
}

/* Tries that later calls do not see a range of the first call's keys: the key whose absence
 * explains most, then the best end of a range from it, and the best begin, twice. call: as in
 * find_best. */
static void try_unseen(tested_attention *x, int call)
{
	const vn_attend_case *a = &x->a;
	const double          error = left_with(x, NULL);
	double                least = (double)INFINITY;
	int64_t               first = 0;
	vn_trial              h = VN_TRIAL(CALLS_UNSEEN, vn_case_node(x->t), .kind = VN_BY_ATTEND,
	                                   .attend = { .kind = VN_ATTEND_CALLS_UNSEEN, .call = call, .unseen = 1 });
	vn_applied_attention *e = &h.applied.attend, best = *e;

	while (first < a->S && vn_call_begin(a->begins, call, first) < 1)
		first++;
	if (!call || !vn_attend_applies(a, e) || first * a->S * x->width > UNSEEN_MOST)
		return;
	vn_attend_prepare(&x->a, e);
	for (e->number = 0; e->number < (double)first; e->number++) {
		const double left = left_with(x, e);
		best = left < least ? *e : best;
		least = fmin(left, least);
	}
	for (int way = 0; way < 4; way++) {
		const int64_t from = (int64_t)best.number, end = from + best.unseen;
		for (int64_t n = 1; n <= (way % 2 ? end : first - from); n++) {
			*e = best;
			e->unseen = (int)n;
			e->number = (double)(way % 2 ? end - n : from);
			const double left = left_with(x, e);
			best = left < least ? *e : best;
			least = fmin(left, least);
		}
	}
	*e = best;
	if (least <= EDIT_LEAVES * error)
		vn_try(x->t, &h);
}

static void try_edit(const tested_attention *x, int best, int call)
{
	const bool packed = edits[best].edit.kind == VN_ATTEND_PADDING && vn_batched_is_packed(x->t->opened->cand);
	vn_trial   h = { .finding = packed ? VN_FINDING_PACKED_SEEN : edits[best].finding,
		             .node = vn_case_node(x->t),
		             .applied = { .kind = VN_BY_ATTEND,
		                          .attend = edit_for(best, call),
		                          .later = edits[best].finding == VN_FINDING_CACHE_ROUNDED } };
	vn_try_format(x->t, &h, &h.applied.attend.inputs, VN_FORMAT_TF32);
}

static void try_best(tested_attention *x)
{
	const vn_step *step;
	const bool     one = vn_recording_steps(x->t->opened->cand, &step) == 1 && !x->t->site->first;
	int64_t        off, last;
	int            best;
	double         least;

	/* A recording that states one call may come from several calls: the second one begins at the
	 * first row in error. */
	vn_case_rows_off(x->t, NULL, &off, &last);
	const int call = x->a.later ? VN_OWN_CALLS : one && off > 1 ? (int)off : 0;
	find_best(x, call, &best, &least);
	if (least <= EDIT_LEAVES * left_with(x, NULL))
		try_edit(x, best, call);
	if (!vn_case_answered(x->t))
		try_unseen(x, call);
}

static bool may_attend_otherwise(const vn_case *t, int node)
{
	const vn_node *n = &t->site->plan->node[node];

	return n->op == VN_OP_ATTENTION && n->c.attention.causal && !t->part && t->consumed != VN_CONSUMED_OTHERS &&
	       !t->x->unmodified.residual.bad;
}

/* Calls after the first do not see the last tokens. */
static void fit_stale_length(vn_case *t, int node)
{
	enum { STALE = 8 };
	const vn_step *s = vn_case_step(t);

	for (int n = 2; s && s->tokens == 1 && !t->brief && n <= STALE && n < t->site->tokens && !vn_case_answered(t);
	     n++) {
		vn_trial h = VN_TRIAL(LENGTH_STALE, node, .later = true);
		vn_trial_constant_put(&h, "ahead", -n);
		vn_try(t, &h);
	}
}

void vn_estimate_seen_keys(vn_case *t)
{
	static const struct {
		vn_finding     finding;
		vn_attend_kind kind;
		bool           later;
	} ways[] = {
		{ VN_FINDING_LARGEST_ALONE, VN_ATTEND_LARGEST, false },
		{ VN_FINDING_FIRST_KEY_ALONE, VN_ATTEND_FIRST_KEY, false },
		{ VN_FINDING_CALLS_ALONE, VN_ATTEND_ONE_OWN, true },
		{ VN_FINDING_MASK_FROM_CALL, VN_ATTEND_ONE_FIRST, true },
		{ VN_FINDING_NOTHING_APPENDED, VN_ATTEND_ONE_PROMPT, true },
	};
	const int node = vn_case_node(t);

	for (size_t i = 0; may_attend_otherwise(t, node) && i < sizeof ways / sizeof *ways; i++) {
		vn_trial h = { .finding = ways[i].finding,
			           .node = node,
			           .applied = { .kind = VN_BY_ATTEND, .attend.kind = ways[i].kind, .later = ways[i].later } };
		vn_try(t, &h);
	}
	if (vn_case_answered(t) && t->x->by[0].applied.kind == VN_BY_ATTEND &&
	    t->x->by[0].applied.attend.kind == VN_ATTEND_ONE_OWN) {
		vn_trial window = { .finding = VN_FINDING_WINDOW, .node = node };
		vn_trial_constant_put(&window, "window", 1);
		vn_try(t, &window);
	}
	if (!vn_case_answered(t) && may_attend_otherwise(t, node))
		fit_stale_length(t, node);
}

void vn_estimate_attend(vn_case *t)
{
	tested_attention x = { .t = t };

	if (!may_attend_otherwise(t, vn_case_node(t)))
		return;
	if (vn_attend_open(&x.a, t, vn_case_node(t))) {
		x.width = x.a.n->c.attention.heads * vn_attend_width(&x.a);
		x.T = vn_shape_count(&t->site->cand.shape) / x.width;
		x.R = x.T < ATTEND_QUERIES ? x.T : ATTEND_QUERIES;
		x.y = vn_alloc((size_t)(2 * x.width), sizeof *x.y);
		x.is = x.y + x.width;
		try_best(&x);
		if (!vn_case_answered(t))
			try_cap(&x);
		if (!vn_case_answered(t))
			try_sink(&x);
		free(x.y);
	}
	vn_attend_close(&x.a);
}
