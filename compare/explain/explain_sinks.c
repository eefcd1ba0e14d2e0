/* explain_sinks.c: a sliding window that keeps the first keys in sight, whatever lies between (attention sinks): two whole numbers.
 *
 * With `keys` at the beginning and a window of `width` the first token that loses one stands at keys + width; of few digits
 * it may come out right all the same, and the first that does not stands behind it. */
#include "compare/explain/explain_inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 128, ROUNDS = 4 }; /* keys at the beginning; times that each number is looked for beside the other */
#define GOOD 0.25   /* used: a window that leaves no more needs no second number */
#define PROMISES 0.5 /* of the error, that two numbers that are not quite right leave at most */

typedef struct sinks {
	int64_t width, keys;
	double  error; /* nmse */
} sinks;

/* Both constants of h, that which is looked for last. */
static vn_hypothesis both(const vn_hypothesis *of, const sinks *s, bool width_last)
{
	vn_hypothesis h = *of;

	vn_made_put(&h, width_last ? "sinks" : "window", (double)(width_last ? s->keys : s->width));
	vn_made_put(&h, width_last ? "window" : "sinks", (double)(width_last ? s->width : s->keys));
	return h;
}

/* The best of a number between low and high, the other as it is. */
static vn_status look(vn_trial *t, const vn_hypothesis *of, sinks *s, bool width, int64_t low, int64_t high, vn_error *err)
{
	vn_hypothesis h = both(of, s, width);
	int64_t       best;
	double        error;
	vn_status     st = high < low ? VN_OK : vn_best_whole(t, &h, low, high, &best, &error, err);

	if (st || high < low || !(error < s->error))
		return st;
	*(width ? &s->width : &s->keys) = best;
	s->error = error;
	return VN_OK;
}

/* Where to begin: numbers that add up to the first token that is off, or the model's own window; of a single token any window. */
static vn_status begin(vn_trial *t, const vn_hypothesis *of, int64_t first, sinks *best, vn_error *err)
{
	const int64_t own = vn_probe_plan(t->probe)->node[of->node].c.attention.window;
	const bool    single = vn_probe_candidate(t->probe)->shape.dim[0] == 1 || vn_probe_first(t->probe) == first;
	vn_status     st = VN_OK;

	*best = (sinks) { .error = (double)INFINITY };
	for (int64_t keys = 1; !st && keys <= MOST && keys < first; keys *= 2) {
		sinks s = { own && first >= own ? own : first - keys, keys, (double)INFINITY };
		if (!(st = look(t, of, &s, true, single ? 1 : s.width, s.width, err)) && s.error < best->error)
			*best = s;
	}
	return st;
}

vn_status vn_fit_sinks(vn_trial *t, const vn_hypothesis *of, int64_t first, vn_error *err)
{
	const vn_explanation *x = t->x;
	const double          whole = x->sound.local.local;
	const double          plain = vn_trial_answered(t) ? x->by[0].used : (double)INFINITY;
	char                  width[64], keys[64];
	double                before = (double)INFINITY;
	sinks                 s;
	vn_status             st;

	if (t->brief || plain <= GOOD || first < 2)
		return VN_OK;
	if ((st = begin(t, of, first, &s, err)) || !(s.error < PROMISES * whole))
		return st;
	for (int i = 0; !st && i < ROUNDS && s.error < before; i++) {
		before = s.error;
		if (!(st = look(t, of, &s, false, 1, MOST < first ? MOST : first - 1, err)))
			st = look(t, of, &s, true, 1, first, err);
	}
	/* Of several queries two at least are to lose keys: one says which it lost, not that they move. */
	if (vn_probe_candidate(t->probe)->shape.dim[0] > 1 && vn_probe_tokens(t->probe) - s.width - s.keys < 2)
		return st;
	vn_hypothesis h = both(of, &s, true), other = both(of, &s, false);
	if (st || (st = vn_weigh_made(t, &h, err)) || !(h.used <= 1) || !(fmax(h.used, VN_EXPLAIN_LEAST / 4) * VN_EXPLAIN_APART < plain))
		return st;
	if ((st = vn_say_whole(t, &h, 1, vn_probe_tokens(t->probe), width, err)) || (st = vn_say_whole(t, &other, 0, MOST, keys, err)))
		return st;
	vn_hypothesis_say(&h, "a sliding window of %s keys and the first %s of all (attention sinks)", width, keys);
	vn_keep(t->x, &h);
	return VN_OK;
}
