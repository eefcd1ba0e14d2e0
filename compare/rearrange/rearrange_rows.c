/* rearrange_rows.c: see rearrange_rows.h. */
#include "compare/rearrange/rearrange_rows.h"
#include "compare/rearrange/rearranged.h"
#include "compare/hypothesis/score.h"

#include "libref/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With fewer rows, equal bits do not show a tile: a single token may be 0 for other reasons. */
enum { ROWS_MIN = 4 };

typedef struct tiles {
	vn_explain_trial *t;
	const vn_tensor  *cand;
	int64_t           T, N;                    /* (T,N) */
	double           *own, *fine, *is, *a, *b; /* expected, expected more precisely, found; room */
	bool             *off;                     /* (T): is the row off by more than rounding? */
	bool             *held;                    /* (T): off, and another's */
} tiles;

static void find_off(tiles *x)
{
	const double limit = VN_PEAK_LIMIT * x->t->x->unmodified.residual.floor_token;

	for (int64_t t = 0; t < x->T; t++) {
		double dd = 0, yy = 0;
		for (int64_t i = t * x->N; i < (t + 1) * x->N; i++) {
			dd += (x->is[i] - x->own[i]) * (x->is[i] - x->own[i]);
			yy += x->own[i] * x->own[i];
		}
		x->off[t] = !(dd <= limit * yy);
	}
}

/* Finds the rows in error with the bits of `other` (NULL: of zeros). Returns how many. */
static int64_t find_held(tiles *x, const char *other)
{
	const size_t row = (size_t)x->N * vn_dtype_size(x->cand->dtype);
	const char  *is = x->cand->data;
	int64_t      n = 0;

	for (int64_t t = 0; t < x->T; t++) {
		bool same = x->off[t] && (!other || (vn_rearrange_any_finite(x->is + t * x->N, x->N) &&
		                                     memcmp(is + (size_t)t * row, other + (size_t)t * row, row) == 0));
		for (int64_t i = t * x->N; same && !other && i < (t + 1) * x->N; i++)
			same = x->is[i] == 0;
		x->held[t] = same;
		n += same;
	}
	return n;
}

/* Writes the first runs of found rows as pairs of numbers. */
static void list_runs(const bool *held, int64_t of, vn_hypothesis *h)
{
	enum { MOST_MOVES = 4 };
	int *list = h->change.result.list, *n = &h->change.result.n;

	for (int64_t t = 0; t < of; t++) {
		int64_t end = t;
		if (!held[t])
			continue;
		if (*n == 2 * MOST_MOVES) {
			h->change.result.more = true;
			return;
		}
		while (end + 1 < of && held[end + 1])
			end++;
		list[(*n)++] = (int)t;
		list[(*n)++] = (int)end;
		t = end;
	}
}

/* Judges the operation's result with those rows unwritten. */
static vn_status judge_tiles(tiles *x, const char *name, vn_error *err)
{
	const vn_plan  *plan = x->t->site->plan;
	const vn_tensor a = { VN_F64, x->cand->shape, x->a }, b = { VN_F64, x->cand->shape, x->b };
	vn_hypothesis   h = { .finding = name ? VN_FINDING_PARTLY_OTHER : VN_FINDING_PARTLY_ZERO,
		                  .node = plan->value[x->t->site->target].node,
		                  .recorder_fault = x->t->consumed == VN_CONSUMED_OTHERS,
		                  .change.kind = VN_BY_RESULT };

	for (int64_t i = 0; i < x->T * x->N; i++) {
		x->a[i] = x->held[i / x->N] ? x->is[i] : x->own[i];
		x->b[i] = x->held[i / x->N] ? x->is[i] : x->fine[i];
	}
	list_runs(x->held, x->T, &h);
	if (name) {
		vn_text_add(h.recorded_instead, sizeof h.recorded_instead, "%s", name);
		vn_text_clean(h.recorded_instead, sizeof h.recorded_instead);
	}
	return vn_try_numbers(x->t, &a, &b, &h, err);
}

/* Finds channels that are 0 in every row and should not be, and judges the result without them. */
static vn_status try_channels(tiles *x, vn_error *err)
{
	const vn_plan  *plan = x->t->site->plan;
	const vn_tensor a = { VN_F64, x->cand->shape, x->a }, b = { VN_F64, x->cand->shape, x->b };
	vn_hypothesis   h = { .finding = VN_FINDING_CHANNELS_ZERO,
		                  .node = plan->value[x->t->site->target].node,
		                  .recorder_fault = x->t->consumed == VN_CONSUMED_OTHERS,
		                  .change.kind = VN_BY_RESULT };
	bool           *gone = calloc((size_t)x->N + 1, sizeof *gone);
	int64_t         some = 0;
	vn_status       st = VN_OK;

	if (!gone)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld channels", (long long)x->N);
	for (int64_t c = 0; c < x->N; c++) {
		bool due = false;
		gone[c] = true;
		for (int64_t t = 0; t < x->T; t++) {
			gone[c] = gone[c] && x->is[t * x->N + c] == 0;
			due = due || x->own[t * x->N + c] != 0;
		}
		gone[c] = gone[c] && due;
		some += gone[c];
	}
	for (int64_t i = 0; i < x->T * x->N; i++) {
		x->a[i] = gone[i % x->N] ? 0 : x->own[i];
		x->b[i] = gone[i % x->N] ? 0 : x->fine[i];
	}
	list_runs(gone, x->N, &h);
	h.change.result.number = (double)x->N;
	if (some && some < x->N)
		st = vn_try_arranged(x->t, &a, &b, &h, err);
	free(gone);
	return st;
}

/* Does that value show this checkpoint's own numbers, as a cache does? Then equal bits prove
 * nothing. */
static bool is_a_view(const vn_explain_trial *t, const vn_entry *e)
{
	const vn_plan *p = t->site->plan;
	const int      v = vn_plan_find(p, e->name), mine = t->site->target, root = v < 0 ? -1 : vn_plan_root(p, v);

	return root >= 0 && (root == mine || (p->value[root].state >= 0 && p->value[root].layer == p->value[mine].layer &&
	                                      vn_rearrange_is_made_of(p, root, mine)));
}

static bool could_hold(const tiles *x, const vn_entry *e, const vn_entry *me)
{
	return !is_a_view(x->t, e) && e != me && e->step == me->step && e->dtype == me->dtype && e->same_as < 0 &&
	       strcmp(e->name, me->name) != 0 && e->shape.rank > 0 && e->shape.dim[0] == x->T &&
	       vn_shape_count(&e->shape) == x->T * x->N;
}

static vn_status try_tiles(tiles *x, vn_error *err)
{
	const vn_comparison *c = x->t->c;
	const vn_entry      *me = vn_recording_entry(c->opened.cand, c->result.checkpoint[x->t->x->checkpoint].cand);
	int64_t              held;
	vn_status            st = VN_OK;

	find_off(x);
	held = find_held(x, NULL);
	if (held >= ROWS_MIN && held < x->T)
		st = judge_tiles(x, NULL, err);
	if (!st && !vn_trial_answered(x->t))
		st = try_channels(x, err);
	for (int i = 0; !st && i < vn_recording_count(c->opened.cand); i++) {
		vn_tensor t;
		if (!could_hold(x, vn_recording_entry(c->opened.cand, i), me) || vn_rearrange_is_wrong_itself(c, i))
			continue;
		if ((st = vn_entry_tensor(c->opened.cand, i, &t, err)))
			break;
		held = find_held(x, t.data);
		if (held >= ROWS_MIN && held < x->T)
			st = judge_tiles(x, vn_recording_entry(c->opened.cand, i)->name, err);
		vn_recording_release(c->opened.cand, i);
	}
	return st;
}

vn_status vn_rearrange_rows(vn_explain_trial *t, vn_error *err)
{
	const vn_tensor *c = &t->site->cand;
	const vn_entry  *e = vn_recording_entry(t->c->opened.cand, t->c->result.checkpoint[t->x->checkpoint].cand);
	const size_t     n = (size_t)vn_shape_count(&c->shape);
	vn_status        st = VN_OK;

	/* rows between sampled rows are unknown */
	if (c->shape.rank < 2 || strncmp(t->site->axes, "token", 5) != 0 || !vn_shape_equal(&c->shape, &e->shape) ||
	    c->shape.dim[0] <= ROWS_MIN)
		return VN_OK;
	tiles x = { t,
		        c,
		        c->shape.dim[0],
		        (int64_t)n / c->shape.dim[0],
		        vn_trial_all_doubles_of(&t->own),
		        vn_trial_all_doubles_of(&t->fine),
		        vn_trial_all_doubles_of(c),
		        vn_trial_all_doubles_of(c),
		        vn_trial_all_doubles_of(c),
		        malloc((size_t)c->shape.dim[0]),
		        malloc((size_t)c->shape.dim[0]) };
	if (x.own && x.fine && x.is && x.a && x.b && x.off && x.held)
		st = try_tiles(&x, err);
	else
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for rows");
	free(x.own);
	free(x.fine);
	free(x.is);
	free(x.a);
	free(x.b);
	free(x.off);
	free(x.held);
	return st;
}
