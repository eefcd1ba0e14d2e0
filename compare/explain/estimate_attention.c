/* estimate_attention.c: fits a sliding window, also with first keys that stay visible.
 *
 * With `keys` first keys and a window of `width`, the first token that loses a key is at keys +
 * width. With few digits that token may still come out right; then the first wrong one is later.
 */
#include "compare/explain/estimate_attention.h"
#include "compare/explain/fit.h"
#include "compare/explain/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The first row of the checkpoint that differs. -1: none does, or there is no token axis. */
static int64_t first_apart(const vn_tensor *z, const vn_tensor *c, const char *axes, double noise)
{
	int64_t outer = 1, inner = 1, first = -1;
	int     axis = 0;
	size_t  n;

	for (const char *word; (word = vn_axes_word(axes, axis, &n)),
	                       n && axis < c->shape.rank && !(n == 5 && strncmp(word, "token", 5) == 0);
	     axis++)
		outer *= c->shape.dim[axis];
	if (axis >= c->shape.rank || !n)
		return -1;
	for (int i = axis + 1; i < c->shape.rank; i++)
		inner *= c->shape.dim[i];
	const int64_t rows = c->shape.dim[axis];
	double       *x = malloc((size_t)(2 * inner) * sizeof *x);
	for (int64_t t = 0; x && t < rows && first < 0; t++) {
		double dd = 0, rr = 0;
		for (int64_t o = 0; o < outer; o++) {
			const size_t at = (size_t)((o * rows + t) * inner);
			vn_to_f64(x, (const char *)z->data + at * vn_dtype_size(z->dtype), z->dtype, (size_t)inner);
			vn_to_f64(x + inner, (const char *)c->data + at * vn_dtype_size(c->dtype), c->dtype, (size_t)inner);
			for (int64_t k = 0; k < inner; k++)
				if (isfinite(x[k]) && isfinite(x[inner + k])) {
					dd += (x[k] - x[inner + k]) * (x[k] - x[inner + k]);
					rr += x[k] * x[k];
				} else {
					dd += x[k] == x[inner + k] ? 0 : 1;
				}
		}
		first = dd > noise * rr ? t : first;
	}
	free(x);
	return first;
}

/* ---- the first keys (attention sinks) -------------------------------------------------------------------- */

enum { MOST = 128, ROUNDS = 4 }; /* the most first keys that stay visible; rounds of fitting each number in turn */
#define GOOD     0.25            /* used: a window that leaves no more than this needs no second number */
#define PROMISES 0.5             /* of the error: what two numbers that are nearly right leave at most */

typedef struct sinks {
	int64_t width, keys;
	double  error; /* nmse */
} sinks;

/* Both constants in one hypothesis; the one that is searched for comes last. */
static vn_hypothesis with_both_numbers(const vn_hypothesis *of, const sinks *s, bool width_last)
{
	vn_hypothesis h = *of;

	vn_constant_put(&h, width_last ? "sinks" : "window", (double)(width_last ? s->keys : s->width));
	vn_constant_put(&h, width_last ? "window" : "sinks", (double)(width_last ? s->width : s->keys));
	return h;
}

/* The best value of one number between low and high, with the other fixed. */
static vn_status improve_sinks(vn_explain_trial *t, const vn_hypothesis *of, sinks *s, bool width, int64_t low,
                               int64_t high, vn_error *err)
{
	vn_hypothesis h = with_both_numbers(of, s, width);
	int64_t       best;
	double        error;
	vn_status     st = high < low ? VN_OK : vn_best_whole(t, &h, low, high, &best, &error, err);

	if (st || high < low || !(error < s->error))
		return st;
	*(width ? &s->width : &s->keys) = best;
	s->error = error;
	return VN_OK;
}

/* Where the search begins: numbers that add up to the first token in error, or the model's own
 * window. With a single token, any window. */
static vn_status begin_search(vn_explain_trial *t, const vn_hypothesis *of, int64_t first, sinks *best, vn_error *err)
{
	const int64_t own = t->site->plan->node[of->node].c.attention.window;
	const bool    single = t->site->cand.shape.dim[0] == 1 || t->site->first == first;
	vn_status     st = VN_OK;

	*best = (sinks) { .error = (double)INFINITY };
	for (int64_t keys = 1; !st && keys <= MOST && keys < first; keys *= 2) {
		sinks s = { own && first >= own ? own : first - keys, keys, (double)INFINITY };
		if (!(st = improve_sinks(t, of, &s, true, single ? 1 : s.width, s.width, err)) && s.error < best->error)
			*best = s;
	}
	return st;
}

static vn_status fit_sinks(vn_explain_trial *t, const vn_hypothesis *of, int64_t first, vn_error *err)
{
	const double  plain = vn_answered(t) ? t->x->by[0].limit_fraction : (double)INFINITY;
	const int64_t tokens = t->site->tokens;
	double        before = (double)INFINITY;
	sinks         s;
	vn_status     st;

	if (t->brief || plain <= GOOD || first < 2)
		return VN_OK;
	if ((st = begin_search(t, of, first, &s, err)) || !(s.error < PROMISES * t->x->unmodified.local.local))
		return st;
	for (int i = 0; !st && i < ROUNDS && s.error < before; i++) {
		before = s.error;
		if (!(st = improve_sinks(t, of, &s, false, 1, MOST < first ? MOST : first - 1, err)))
			st = improve_sinks(t, of, &s, true, 1, first, err);
	}
	/* At least two of several queries must lose keys: one query shows which keys it lost, not
	 * that the window moves. */
	if (t->site->cand.shape.dim[0] > 1 && tokens - s.width - s.keys < 2)
		return st;
	vn_hypothesis h = with_both_numbers(of, &s, true), other = with_both_numbers(of, &s, false);
	if (st || (st = vn_score(t, &h, err)) || !(h.limit_fraction <= 1) ||
	    !(fmax(h.limit_fraction, VN_EXPLAIN_LEAST / 4) * VN_EXPLAIN_APART < plain))
		return st;
	if ((st = vn_as_good(t, &h, s.width, 1, tokens, &h.first, &h.last, err)) ||
	    (st = vn_as_good(t, &other, s.keys, 0, MOST, &h.first_also, &h.last_also, err)))
		return st;
	h.finding = VN_WINDOW_AND_SINKS;
	vn_keep(t->x, &h);
	return VN_OK;
}

/* ---- a window -------------------------------------------------------------------------------------------- */

/* Tokens before the window's end see all keys, so the window is no wider than the first token in
 * error. Of a window wider than the model's own, only that it is wider is known. */
vn_status vn_estimate_window(vn_explain_trial *t, const vn_hypothesis *at, vn_error *err)
{
	const vn_tensor *c = &t->site->cand;
	const int64_t    own = t->site->plan->node[at->node].c.attention.window;
	int64_t          best = 0;
	int64_t          first;
	double           error;
	vn_status        st = VN_OK;

	if ((first = first_apart(&t->own, c, t->site->axes, VN_PEAK_LIMIT * t->x->unmodified.local.floor_token)) < 0)
		return VN_OK;
	first += t->site->first;
	/* With a narrower window the first tokens affected may still come out right, because they
	 * give little weight to what they lost. */
	for (int narrower = !(own && first >= own); !st && narrower < 2 && !vn_answered(t); narrower++) {
		vn_hypothesis one = *at;
		const int64_t low = narrower ? 1 : own + 1, high = !narrower             ? t->site->tokens
		                                                   : own && first >= own ? own - 1
		                                                                         : first;
		one.finding = VN_WINDOW;
		vn_constant_put(&one, "window", (double)low);
		if (high >= low && !(st = vn_best_whole(t, &one, low, high, &best, &error, err)) && isfinite(error))
			st = vn_fit_whole(t, &one, best, low, high, err);
	}
	return st ? st : fit_sinks(t, at, first, err);
}
