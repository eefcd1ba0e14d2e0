/* explain_cap.c: logits that a cap bends, c tanh(x / c): which c, read off the curve. */
#include "compare/explain/explain_inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ASKED = 1 << 16 };  /* logits that the cap is read off, about */
enum { GRID = 64, FINER = 4, DIGITS = 4 };
#define WIDEST 100.0 /* times the largest logit: a wider cap bends nothing */
#define LEFT 0.1     /* of the error, at most, with the best of a grid */

typedef struct curve {
	const double *own, *cand; /* (n): as they should be, as they are */
	int64_t       n;
} curve;

/* Squares of what the cap leaves. */
static double error_of(const curve *x, double c)
{
	double sum = 0;

	for (int64_t i = 0; i < x->n; i += 1 + x->n / ASKED) {
		const double d = c * tanh(x->own[i] / c) - x->cand[i];
		sum += d * d;
	}
	return sum;
}

/* The cap that leaves least; 0: none leaves little. */
static double best_cap(const curve *x)
{
	double whole = 0, top = 0, best = 0;

	for (int64_t i = 0; i < x->n; i += 1 + x->n / ASKED)
		whole += (x->own[i] - x->cand[i]) * (x->own[i] - x->cand[i]);
	for (int64_t i = 0; i < x->n; i++)
		top = fabs(x->cand[i]) > top ? fabs(x->cand[i]) : top;
	if (!(top > 0))
		return 0;
	double low = log(top), high = log(WIDEST * top);
	for (int k = 0; k < FINER; k++) {
		const double step = (high - low) / (GRID - 1);
		double       least = (double)INFINITY;
		for (int i = 0; i < GRID; i++) {
			const double e = error_of(x, exp(low + i * step));
			if (e < least) {
				least = e;
				best = low + i * step;
			}
		}
		if (!(least < LEFT * whole))
			return 0;
		low = best - step;
		high = best + step;
	}
	return exp(best);
}

vn_status vn_fit_cap(vn_trial *t, const double *own, const double *fine, const double *cand, int64_t n, vn_error *err)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	const curve    x = { own, cand, n };
	const double   c = p->value[vn_probe_target(t->probe)].point == VN_POINT_LOGITS && !t->x->sound.local.bad ? best_cap(&x) : 0;
	double        *a, *b;
	vn_status      st = VN_OK;

	if (!(c > 0))
		return VN_OK;
	a = malloc((size_t)n * sizeof *a);
	b = malloc((size_t)n * sizeof *b);
	if (!a || !b)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for capped logits");
	for (int digits = 1; !st && digits <= DIGITS && !vn_trial_answered(t); digits++) { /* a person wrote it */
		vn_hypothesis h = { .id = "M9" };
		char          text[32];
		snprintf(text, sizeof text, "%.*g", digits, c);
		const double said = atof(text);
		for (int64_t i = 0; i < n; i++) {
			a[i] = said * tanh(own[i] / said);
			b[i] = said * tanh(fine[i] / said);
		}
		h.made.number = said;
		vn_hypothesis_say(&h, "logits capped: %.6g tanh(x / %.6g)", said, said);
		st = vn_try_as_stored(t, a, b, &h, err);
	}
	free(a);
	free(b);
	return st;
}
