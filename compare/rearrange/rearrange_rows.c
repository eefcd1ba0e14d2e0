/* rearrange_rows.c: see rearrange.h. */
#include "compare/rearrange/rearrange.h"
#include "compare/rearrange/rearranged.h"
#include "compare/trial/score.h"

#include "libref/base/alloc.h"
#include "libref/base/text.h"

#include <stdlib.h>
#include <string.h>

/* With fewer rows, equal bits do not show a tile: a single token may be 0 for other reasons. */
enum { ROWS_MIN = 4 };

typedef struct tiles {
	vn_rearranged r;
	int64_t       T, N; /* (T,N) */
	bool         *off;  /* (T): is the row off by more than rounding? */
	bool         *held; /* (T): off, and another's */
} tiles;

/* Finds the rows in error with the bits of `other` (NULL: of zeros). Returns how many. */
static int64_t find_held(tiles *x, const char *other)
{
	const size_t row = (size_t)x->N * vn_dtype_size(x->r.like->dtype);
	const char  *is = x->r.like->data;
	int64_t      n = 0;

	for (int64_t t = 0; t < x->T; t++) {
		bool same = x->off[t] && (!other || (vn_rearrange_any_finite(x->r.cand + t * x->N, x->N) &&
		                                     memcmp(is + (size_t)t * row, other + (size_t)t * row, row) == 0));
		for (int64_t i = t * x->N; same && !other && i < (t + 1) * x->N; i++)
			same = x->r.cand[i] == 0;
		x->held[t] = same;
		n += same;
	}
	return n;
}

/* Writes the first runs of found rows as pairs of numbers. */
static void list_runs(const bool *held, int64_t of, vn_trial *h)
{
	enum { MOST_MOVES = 4 };
	int *list = h->applied.result.list, *n = &h->applied.result.n;

	for (int64_t t = 0; t < of; t++) {
		int64_t end = t;
		if (!held[t])
			continue;
		if (*n == 2 * MOST_MOVES) {
			h->applied.result.more = true;
			return;
		}
		while (end + 1 < of && held[end + 1])
			end++;
		list[(*n)++] = (int)t;
		list[(*n)++] = (int)end;
		t = end;
	}
}

/* Judges the operation's result with those rows, or channels, as the candidate has them. */
static void judge_unwritten(tiles *x, bool by_row, const bool *held, vn_trial *h)
{
	vn_rearranged  *r = &x->r;
	const vn_tensor a = { VN_F64, r->like->shape, r->a }, b = { VN_F64, r->like->shape, r->b };

	h->node = vn_case_node(r->t);
	h->recorder_fault = r->t->consumed == VN_CONSUMED_OTHERS;
	h->applied.kind = VN_BY_RESULT;
	for (int64_t i = 0; i < r->n; i++) {
		const bool as_is = held[by_row ? i / x->N : i % x->N];
		r->a[i] = as_is ? r->cand[i] : r->own[i];
		r->b[i] = as_is ? r->cand[i] : r->fine[i];
	}
	list_runs(held, by_row ? x->T : x->N, h);
	vn_try_numbers(r->t, &a, &b, by_row ? NULL : &r->t->reference_variants, h);
}

/* Tries that the rows in error with the bits of `other` (NULL: of zeros) were not written. name: of
 * that checkpoint. */
static void try_rows(tiles *x, const char *name, const void *other)
{
	const int64_t held = find_held(x, other);
	vn_trial      h = { .finding = other ? VN_FINDING_PARTLY_OTHER : VN_FINDING_PARTLY_ZERO };

	if (held < ROWS_MIN || held >= x->T)
		return;
	vn_text_add(h.recorded_instead, sizeof h.recorded_instead, "%s", name);
	vn_text_clean(h.recorded_instead, sizeof h.recorded_instead);
	judge_unwritten(x, true, x->held, &h);
}

/* Tries that the channels that are 0 in every row, and should not be, were not written. */
static void try_channels(tiles *x)
{
	vn_trial       h = { .finding = VN_FINDING_CHANNELS_ZERO, .applied.result.number = (double)x->N };
	VN_FREED bool *gone = vn_alloc_zero((size_t)x->N, sizeof *gone);
	int64_t        some = 0;

	for (int64_t c = 0; c < x->N; c++) {
		bool due = false, zero = true;
		for (int64_t i = c; i < x->r.n; i += x->N) {
			zero = zero && x->r.cand[i] == 0;
			due = due || x->r.own[i] != 0;
		}
		some += gone[c] = zero && due;
	}
	if (some && some < x->N)
		judge_unwritten(x, false, gone, &h);
}

/* Does that value show this checkpoint's own numbers, as a cache does? Then equal bits prove
 * nothing. */
static bool is_a_view(const vn_case *t, const vn_entry *e)
{
	const vn_plan *p = t->site->plan;
	const int      v = vn_plan_find(p, e->name), mine = t->site->target, root = v < 0 ? -1 : vn_plan_root(p, v);

	return root >= 0 && (root == mine || (p->value[root].state >= 0 && p->value[root].layer == p->value[mine].layer &&
	                                      vn_rearrange_is_made_of(p, root, mine)));
}

static void try_tiles(tiles *x)
{
	vn_recording *own = x->r.t->opened->cand;
	int64_t       first, last;

	vn_case_rows_off(x->r.t, x->off, &first, &last);
	try_rows(x, "", NULL);
	if (!vn_case_answered(x->r.t))
		try_channels(x);
	for (int i = 0; i < vn_recording_count(own); i++) {
		const vn_entry *e = vn_recording_entry(own, i);
		vn_tensor       t;
		if (e->shape.rank < 1 || e->shape.dim[0] != x->T || !vn_rearrange_could_hold(&x->r, i) || !x->r.t->site->plan ||
		    is_a_view(x->r.t, e))
			continue;
		if (!vn_case_made(x->r.t, vn_entry_tensor(own, i, &t, vn_case_error(x->r.t))))
			break;
		try_rows(x, e->name, t.data);
		vn_recording_release(own, i);
	}
}

void vn_rearrange_rows(vn_case *t)
{
	const vn_tensor *c = &t->site->cand;
	const vn_entry  *e = vn_recording_entry(t->opened->cand, t->result->checkpoints.of[t->x->checkpoint].cand);

	/* rows between sampled rows are unknown */
	if (c->shape.rank < 2 || t->site->sampled || c->shape.dim[0] <= ROWS_MIN)
		return;
	if (t->site->plan && (strncmp(t->site->axes, "token", 5) != 0 || !vn_shape_equal(&c->shape, &e->shape)))
		return;
	tiles x = { .T = c->shape.dim[0],
		        .N = vn_shape_count(&c->shape) / c->shape.dim[0],
		        .off = vn_alloc((size_t)c->shape.dim[0], 1),
		        .held = vn_alloc((size_t)c->shape.dim[0], 1) };
	vn_rearranged_open(&x.r, t);
	try_tiles(&x);
	vn_rearranged_close(&x.r);
	VN_FREE(x.off, x.held);
}
