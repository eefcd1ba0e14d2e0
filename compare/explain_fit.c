/* explain_fit.c: where no fault of the catalogue fits as it is: parameters of the operation,
 * fitted. What is estimated is then computed and held against its floor like any other
 * hypothesis, so a bad estimate explains nothing. */
#include "compare/explain_inside.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3)))
void vn_hypothesis_say(vn_hypothesis *h, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(h->words, sizeof h->words, format, args);
	va_end(args);
}

vn_status vn_try_node(vn_trial *t, int node, const vn_node *as, vn_hypothesis *h, vn_error *err)
{
	vn_plan  *p;
	vn_status st = vn_plan_clone(vn_probe_plan(t->probe), &p, err);

	if (st)
		return st;
	h->node = node;
	p->node[node] = *as;
	st = vn_try(t, p, vn_probe_weights(t->probe), h, err);
	vn_plan_destroy(p);
	return st;
}

/* ---- one parameter, by looking for the least error ------------------------------------------ */

typedef struct search {
	vn_trial   *t;
	int         node;
	const char *name;   /* of the constant */
	bool        whole;  /* it is a whole number */
	double      best, error; /* so far; of log x */
} search;

/* What is left of the checkpoint with the constant at exp(u), as nmse. */
static vn_status error_at(search *s, double u, double *error, vn_error *err)
{
	vn_plan    *p;
	vn_tensor   z;
	vn_measured m;
	vn_status   st = vn_plan_clone(vn_probe_plan(s->t->probe), &p, err);

	*error = (double)INFINITY;
	if (st)
		return st;
	if (!(st = vn_const_set(&p->node[s->node], s->name, s->whole ? round(exp(u)) : exp(u), err)) &&
	    !(st = vn_probe_run(s->t->probe, p, vn_probe_weights(s->t->probe), VN_PROBE_OWN, &z, err))) {
		st = vn_measure(&z, vn_probe_candidate(s->t->probe), vn_probe_axes(s->t->probe), false, s->t->c->options->threads, &m, err);
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

/* log x between low and high: on a grid, then by golden section around the best. */
static vn_status least(search *s, double low, double high, vn_error *err)
{
	const double step = (high - low) / (COARSE - 1);
	double    error;
	vn_status st = VN_OK;

	s->error = (double)INFINITY;
	for (int i = 0; !st && i < COARSE; i++)
		st = error_at(s, low + i * step, &error, err);
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

double vn_three_digits(double x)
{
	char text[32];
	snprintf(text, sizeof text, "%.3g", x);
	return atof(text);
}

/* A person wrote the number: of few digits, where that is as good. */
static double plain_number(double x)
{
	const double y = vn_three_digits(x);
	return fabs(x / y - 1) < 2e-4 ? y : x;
}

static vn_status fit_constant(vn_trial *t, int node, const char *name, double low, double high, const char *id, const char *words, vn_error *err)
{
	search        s = { .t = t, .node = node, .name = name };
	vn_hypothesis h = { 0 };
	vn_node       n = vn_probe_plan(t->probe)->node[node];
	vn_status     st = least(&s, log(low), log(high), err);

	if (st || !isfinite(s.error))
		return st;
	for (int plain = 1; !st && plain >= 0; plain--) {
		const double x = plain ? plain_number(exp(s.best)) : exp(s.best);
		if (!plain && x == plain_number(x))
			break;
		h = (vn_hypothesis) { 0 };
		snprintf(h.id, sizeof h.id, "%s", id);
		vn_hypothesis_say(&h, words, x);
		if (!(st = vn_const_set(&n, name, x, err)))
			st = vn_try_node(t, node, &n, &h, err);
		if (vn_trial_answered(t))
			break;
	}
	return st;
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

static vn_status try_window(vn_trial *t, int node, int64_t w, vn_error *err)
{
	vn_node       n = vn_probe_plan(t->probe)->node[node];
	vn_hypothesis h = { .id = "A5" };

	n.c.attention.window = (int)w;
	vn_hypothesis_say(&h, "a sliding window of %lld keys", (long long)w);
	return vn_try_node(t, node, &n, &h, err);
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

/* Tokens before the window's end see all keys: it is no wider than the first that comes out otherwise. Of a wider window than the
 * model's own, only that it is wider. */
static vn_status fit_window(vn_trial *t, int node, vn_error *err)
{
	const vn_tensor *c = vn_probe_candidate(t->probe);
	const int        own = vn_probe_plan(t->probe)->node[node].c.attention.window;
	search           s = { .t = t, .node = node, .name = "window", .whole = true };
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
	const bool    wider = own && first >= own;
	const int64_t low = wider ? own + 1 : 1, high = wider ? vn_probe_tokens(t->probe) : first;
	if (high < low || (st = best_window(&s, low, high, &best, err)) || !isfinite(s.error))
		return st;
	for (int64_t w = best - 1; !st && w <= best + 1; w++)
		if (w >= low && w <= high)
			st = try_window(t, node, w, err);
	return st;
}

/* ---- operations ------------------------------------------------------------------------------------- */

static vn_status fit_node(vn_trial *t, int node, vn_error *err)
{
	const vn_node *n = &vn_probe_plan(t->probe)->node[node];
	vn_status      st = VN_OK;

	switch (n->op) {
	case VN_OP_ROPE:
		return vn_fit_rope(t, node, err);
	case VN_OP_RMS_NORM:
	case VN_OP_LAYER_NORM:
	case VN_OP_L2_NORM:
	case VN_OP_GATED_NORM:
		return fit_constant(t, node, "eps", 1e-13, 10, "N1", "eps is %.4g", err);
	case VN_OP_ATTENTION:
		st = fit_window(t, node, err);
		return st || vn_trial_answered(t) ? st
		     : fit_constant(t, node, "scale", n->c.attention.scale / 100, n->c.attention.scale * 100, "A1", "scores scaled by %.6g", err);
	case VN_OP_DELTA_RULE:
		return fit_constant(t, node, "scale", n->c.delta.scale / 100, n->c.delta.scale * 100, "G6", "queries of the delta rule scaled by %.6g", err);
	default:
		return VN_OK;
	}
}

vn_status vn_try_fits(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err)
{
	int        n;
	const int *span = vn_probe_span(t->probe, &n);
	vn_status  st = VN_OK;

	/* A number that comes with an operation before this one would be looked for in vain where several may be at fault. */
	for (int i = 0; !st && i < n && i < 4; i++)
		st = fit_node(t, span[i], err);
	return st ? st : vn_try_arrangements(t, own, fine, err);
}
