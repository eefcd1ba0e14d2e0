/* explain_tiles.c: rows that were not written: what stood there before is there, or nothing. */
#include "compare/explain/explain_inside.h"

#include "libref/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fewer rows that are another's are no tile: a token alone may be 0 for reasons of its own. */
enum { ROWS_MIN = 4 };

typedef struct tiles {
	vn_trial        *t;
	const vn_tensor *cand;
	int64_t          T, N;     /* (T,N) */
	double          *own, *fine, *is, *a, *b; /* as it should be, more precisely, as it is; room */
	bool            *off;      /* (T): of more than rounding */
	bool            *held;     /* (T): off, and another's */
} tiles;

static void find_off(tiles *x)
{
	const double limit = VN_PEAK_LIMIT * x->t->x->sound.local.floor_token;

	for (int64_t t = 0; t < x->T; t++) {
		double dd = 0, yy = 0;
		for (int64_t i = t * x->N; i < (t + 1) * x->N; i++) {
			dd += (x->is[i] - x->own[i]) * (x->is[i] - x->own[i]);
			yy += x->own[i] * x->own[i];
		}
		x->off[t] = !(dd <= limit * yy);
	}
}

/* Rows that are off and have the bits of other's; NULL: of zeros. How many. */
static int64_t find_held(tiles *x, const char *other)
{
	const size_t row = (size_t)x->N * vn_dtype_size(x->cand->dtype);
	const char  *is = x->cand->data;
	int64_t      n = 0;

	for (int64_t t = 0; t < x->T; t++) {
		bool same = x->off[t] && (!other || memcmp(is + (size_t)t * row, other + (size_t)t * row, row) == 0);
		for (int64_t i = t * x->N; same && !other && i < (t + 1) * x->N; i++)
			same = x->is[i] == 0;
		x->held[t] = same;
		n += same;
	}
	return n;
}

/* "32-47 and 64-79" */
static void say_rows(const tiles *x, char *text, size_t size)
{
	enum { FEW = 4 };
	int said = 0;

	*text = '\0';
	for (int64_t t = 0; t < x->T; t++) {
		const size_t used = strlen(text);
		int64_t      end = t;
		if (!x->held[t])
			continue;
		while (end + 1 < x->T && x->held[end + 1])
			end++;
		if (said++ == FEW) {
			snprintf(text + used, size - used, "...");
			return;
		}
		if (end > t)
			snprintf(text + used, size - used, "%s%lld-%lld", said > 1 ? ", " : "", (long long)t, (long long)end);
		else
			snprintf(text + used, size - used, "%s%lld", said > 1 ? ", " : "", (long long)t);
		t = end;
	}
}

/* The rows of the operation, but for those that were not written. */
static vn_status judge(tiles *x, const char *name, vn_error *err)
{
	const vn_plan *plan = vn_probe_plan(x->t->probe);
	const int      target = vn_probe_target(x->t->probe);
	const vn_tensor a = { VN_F64, x->cand->shape, x->a }, b = { VN_F64, x->cand->shape, x->b };
	vn_hypothesis  h = { .id = "P9", .node = plan->value[target].node, .capture = x->t->went == VN_NOT_WENT_ON };
	char           rows[120];

	for (int64_t i = 0; i < x->T * x->N; i++) {
		x->a[i] = x->held[i / x->N] ? x->is[i] : x->own[i];
		x->b[i] = x->held[i / x->N] ? x->is[i] : x->fine[i];
	}
	say_rows(x, rows, sizeof rows);
	if (name) {
		vn_hypothesis_say(&h, "partly written: tokens %s are another checkpoint's, bit for bit", rows);
		snprintf(h.holds, sizeof h.holds, "%s", name);
		vn_text_clean(h.holds, sizeof h.holds);
	} else {
		vn_hypothesis_say(&h, "partly written: tokens %s are 0", rows);
	}
	return vn_try_numbers(x->t, &a, &b, &h, err);
}

static bool could_hold(const tiles *x, const vn_entry *e, const vn_entry *me)
{
	return e != me && e->step == me->step && e->dtype == me->dtype && e->same_as < 0 && strcmp(e->name, me->name) != 0 && e->shape.rank > 0 &&
	       e->shape.dim[0] == x->T && vn_shape_count(&e->shape) == x->T * x->N;
}

static vn_status search(tiles *x, vn_error *err)
{
	const vn_comparison *c = x->t->c;
	const vn_entry      *me = vn_recording_entry(c->cand, c->point[x->t->x->point].cand);
	int64_t   held;
	vn_status st = VN_OK;

	find_off(x);
	held = find_held(x, NULL);
	if (held >= ROWS_MIN && held < x->T)
		st = judge(x, NULL, err);
	for (int i = 0; !st && i < vn_recording_count(c->cand); i++) {
		vn_tensor t;
		if (!could_hold(x, vn_recording_entry(c->cand, i), me))
			continue;
		if ((st = vn_entry_tensor(c->cand, i, &t, err)))
			break;
		held = find_held(x, t.data);
		if (held >= ROWS_MIN && held < x->T)
			st = judge(x, vn_recording_entry(c->cand, i)->name, err);
		vn_recording_release(c->cand, i);
	}
	return st;
}

static double *doubles(const vn_tensor *t, size_t n)
{
	double *x = malloc((n + 1) * sizeof *x);

	if (x && t)
		vn_to_f64(x, t->data, t->dtype, n);
	return x;
}

vn_status vn_try_tiles(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err)
{
	const vn_tensor *c = vn_probe_candidate(t->probe);
	const vn_entry  *e = vn_recording_entry(t->c->cand, t->c->point[t->x->point].cand);
	const size_t     n = (size_t)vn_shape_count(&c->shape);
	vn_status        st = VN_OK;

	/* of rows that were sampled what is between them is not known */
	if (c->shape.rank < 2 || strncmp(vn_probe_axes(t->probe), "token", 5) != 0 || !vn_shape_equal(&c->shape, &e->shape) || c->shape.dim[0] <= ROWS_MIN)
		return VN_OK;
	tiles x = { t, c, c->shape.dim[0], (int64_t)n / c->shape.dim[0], doubles(own, n), doubles(fine, n), doubles(c, n), doubles(NULL, n), doubles(NULL, n),
	            malloc((size_t)c->shape.dim[0]), malloc((size_t)c->shape.dim[0]) };
	if (x.own && x.fine && x.is && x.a && x.b && x.off && x.held)
		st = search(&x, err);
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
