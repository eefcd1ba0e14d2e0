/* explain_fit.c: where no fault of the catalogue fits as it is: parameters of the operation,
 * fitted. What is estimated is then computed and held against its floor like any other
 * hypothesis, so a bad estimate explains nothing. */
#include "compare/explain/explain_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one parameter, by looking for the least error ------------------------------------------ */

typedef struct search {
	vn_trial      *t;
	vn_hypothesis *h;   /* its last constant is looked for */
	bool           whole;  /* it is a whole number */
	double         best, error; /* so far; of log x */
} search;

/* What is left of the checkpoint with the constant at exp(u), as nmse. */
static vn_status error_at(search *s, double u, double *error, vn_error *err)
{
	vn_probe   *probe = s->t->probe;
	vn_plan    *p;
	vn_tensor   z;
	vn_measured m;
	vn_status   st;

	*error = (double)INFINITY;
	s->h->made.set[s->h->made.n - 1].value = s->whole ? round(exp(u)) : exp(u);
	if ((st = vn_made_plan(s->t, s->h, &p, err)))
		return st;
	if (!(st = vn_probe_run(probe, p, vn_probe_weights(probe), VN_PROBE_OWN, &z, err))) {
		if (s->t->part)
			vn_part_splice(s->t->part, &z, s->t->part->own);
		st = vn_measure(&z, vn_probe_candidate(probe), vn_probe_axes(probe), false, s->t->c->options->threads, &m, err);
		free((void *)(uintptr_t)z.data);
		/* relative to the candidate's size: a prediction of enormous numbers is no good one */
		*error = !st && m.finite ? m.value[VN_M_NMSE] : (double)INFINITY;
	}
	vn_plan_destroy(p);
	if (*error < s->error) {
		s->error = *error;
		s->best = u;
	}
	return st;
}

enum { COARSE = 17, FINE = 36 };
#define GOLDEN 0.6180339887498949
#define NEARER 0.75 /* what the best of a grid leaves of the error at most, where it is to be looked at closer */

/* log x within the range: on a grid, then by golden section around the best. */
static vn_status least(search *s, const vn_range *in, vn_error *err)
{
	const double low = log(in->low), high = log(in->high), step = (high - low) / (in->steps - 1);
	double    error;
	vn_status st = VN_OK;

	s->error = (double)INFINITY;
	for (int i = 0; !st && i < in->steps; i++)
		st = error_at(s, low + i * step, &error, err);
	if (in->vague && !(s->error < NEARER * s->t->x->sound.local.local)) {
		s->error = (double)INFINITY;
		return st;
	}
	double a = s->best - step, b = s->best + step, x = b - GOLDEN * (b - a), y = a + GOLDEN * (b - a), at_x, at_y;
	if (st || (st = error_at(s, x, &at_x, err)) || (st = error_at(s, y, &at_y, err)))
		return st;
	for (int i = 0; !st && i < FINE; i++)
		if (at_x < at_y) {
			b = y, y = x, at_y = at_x, x = b - GOLDEN * (b - a);
			st = error_at(s, x, &at_x, err);
		} else {
			a = x, x = y, at_x = at_y, y = a + GOLDEN * (b - a);
			st = error_at(s, y, &at_y, err);
		}
	return st;
}

vn_status vn_fit_constant(vn_trial *t, vn_hypothesis *h, const char *name, vn_range within, const char *words, vn_error *err)
{
	search    s = { .t = t, .h = h };
	vn_status st;

	vn_made_put(h, name, within.low);
	st = least(&s, &within, err);
	return st || !isfinite(s.error) ? st : vn_try_digits(t, h, exp(s.best), words, err);
}

/* ---- a window ------------------------------------------------------------------------------------ */

/* The first row of the checkpoint that differs; of no axis of tokens or where none does -1. */
static int64_t first_apart(const vn_tensor *z, const vn_tensor *c, const char *axes, double noise)
{
	int64_t outer = 1, inner = 1, first = -1;
	int     axis = 0;
	size_t  n;

	for (const char *word; (word = vn_axes_word(axes, axis, &n)), n && axis < c->shape.rank && !(n == 5 && strncmp(word, "token", 5) == 0); axis++)
		outer *= c->shape.dim[axis];
	if (axis >= c->shape.rank || !n)
		return -1;
	for (int i = axis + 1; i < c->shape.rank; i++)
		inner *= c->shape.dim[i];
	const int64_t rows = c->shape.dim[axis];
	double *x = malloc((size_t)(2 * inner) * sizeof *x);
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

/* The window between low and high that leaves least: the further from the right one, the more keys are seen or not seen that should
 * not be. On a grid that is made finer around the best. */
static vn_status best_window(search *s, int64_t low, int64_t high, int64_t *best, vn_error *err)
{
	vn_status st = VN_OK;
	double    error;

	for (int64_t step = 0; !st && step != 1;) {
		step = (high - low) / COARSE + 1;
		s->error = (double)INFINITY;
		for (int64_t w = low; !st && w <= high; w += step)
			st = error_at(s, log((double)w), &error, err);
		*best = llround(exp(s->best));
		low = *best - step > low ? *best - step : low;
		high = *best + step < high ? *best + step : high;
	}
	return st;
}

vn_status vn_best_whole(vn_trial *t, vn_hypothesis *h, int64_t low, int64_t high, int64_t *best, double *error, vn_error *err)
{
	search          s = { .t = t, .h = h, .whole = true };
	const vn_status st = best_window(&s, low, high, best, err);

	*error = s.error;
	vn_made_number(h, (double)*best);
	return st;
}

/* Tokens before the window's end see all keys: it is no wider than the first that comes out otherwise. Of a wider window than the
 * model's own, only that it is wider. */
vn_status vn_fit_window(vn_trial *t, vn_hypothesis *h, vn_error *err)
{
	const vn_tensor *c = vn_probe_candidate(t->probe);
	const int64_t    own = vn_probe_plan(t->probe)->node[h->node].c.attention.window;
	search           s = { .t = t, .whole = true };
	int64_t          best = 0;
	vn_tensor        z;
	vn_status        st = vn_probe_run(t->probe, vn_probe_plan(t->probe), vn_probe_weights(t->probe), VN_PROBE_OWN, &z, err);

	if (st)
		return st == VN_ERR_UNSUPPORTED ? VN_OK : st;
	int64_t first = first_apart(&z, c, vn_probe_axes(t->probe), VN_PEAK_LIMIT * t->x->sound.local.floor_token);
	free((void *)(uintptr_t)z.data);
	if (first < 0)
		return VN_OK;
	first += vn_probe_first(t->probe);
	/* The first tokens that a narrower one makes otherwise may come out right all the same: they hardly listened to what they lost. */
	for (int narrower = !(own && first >= own); !st && narrower < 2 && !vn_trial_answered(t); narrower++) {
		vn_hypothesis one = *h;
		const int64_t low = narrower ? 1 : own + 1, high = !narrower ? vn_probe_tokens(t->probe) : own && first >= own ? own - 1 : first;
		vn_made_put(&one, "window", (double)low);
		s.h = &one;
		if (high >= low && !(st = best_window(&s, low, high, &best, err)) && isfinite(s.error))
			st = vn_try_whole(t, &one, best, low, high, "a sliding window of %s keys", err);
	}
	return st ? st : vn_fit_sinks(t, h, first, err);
}

/* ---- operations ------------------------------------------------------------------------------------- */

static vn_status fit_number(vn_trial *t, int node, const char *id, const char *name, double low, double high, const char *words, vn_error *err)
{
	vn_hypothesis h = { .node = node };

	memcpy(h.id, id, strlen(id) + 1);
	return vn_fit_constant(t, &h, name, (vn_range) { low, high, COARSE, false }, words, err);
}

/* eps beside the root, which of rows that are alike comes to the same as another under it. */
static vn_status fit_outside(vn_trial *t, int node, vn_error *err)
{
	vn_hypothesis h = { .id = "N2", .node = node };

	vn_made_put(&h, "eps_outside", 1);
	return vn_fit_constant(t, &h, "eps", (vn_range) { 1e-13, 10, COARSE, false }, "eps is added to the root, not under it, and is %.4g", err);
}

static vn_status fit_node(vn_trial *t, int node, vn_error *err)
{
	const vn_node *n = &vn_probe_plan(t->probe)->node[node];
	vn_hypothesis  window = { .id = "A5", .node = node };
	vn_status      st = VN_OK;

	switch (n->op) {
	case VN_OP_ROPE:
		return vn_fit_rope(t, node, err);
	case VN_OP_POSITIONS:
		return vn_fit_positions(t, node, err);
	case VN_OP_RMS_NORM:
	case VN_OP_LAYER_NORM:
	case VN_OP_L2_NORM:
	case VN_OP_GATED_NORM:
		return (st = fit_number(t, node, "N1", "eps", 1e-13, 10, "eps is %.4g", err)) ? st : fit_outside(t, node, err);
	case VN_OP_ATTENTION:
		st = vn_fit_window(t, &window, err);
		return st || vn_trial_answered(t) ? st
		     : fit_number(t, node, "A1", "scale", n->c.attention.scale / 100, n->c.attention.scale * 100, "scores scaled by %.6g", err);
	case VN_OP_DELTA_RULE:
		return fit_number(t, node, "G6", "scale", n->c.delta.scale / 100, n->c.delta.scale * 100, "queries of the delta rule scaled by %.6g", err);
	default:
		return VN_OK;
	}
}

vn_status vn_fit_nodes(vn_trial *t, vn_error *err)
{
	int        n;
	const int *span = vn_probe_span(t->probe, &n);
	vn_status  st = VN_OK;

	for (int i = 0; !st && i < n && i < VN_FIT_ALONE; i++)
		st = fit_node(t, span[i], err);
	return st || vn_trial_answered(t) || n < 2 ? st : vn_fit_together(t, err);
}

vn_status vn_try_fits(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err)
{
	vn_status st = vn_fit_nodes(t, err);

	if (!st && !vn_trial_answered(t))
		st = vn_fit_numbers(t, own, fine, err);
	if (!st && !vn_trial_answered(t))
		st = vn_fit_keys(t, own, err);
	return st ? st : vn_try_arrangements(t, own, fine, err);
}
