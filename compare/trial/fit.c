/* fit.c: see fit.h. */
#include "compare/trial/fit.h"
#include "compare/trial/case.h"
#include "compare/trial/score.h"
#include "compare/trial/trial_apply.h"
#include "compare/trial/search.h"

#include <math.h>

/* ---- by looking for the least error ---------------------------------------------------------- */

typedef struct fit {
	vn_case  *t;
	vn_trial *h;
} fit;

/* The nmse that is left with this constant. */
static vn_status error_at(void *of, double x, double *error, vn_error *err)
{
	const fit  *f = of;
	vn_case    *t = f->t;
	vn_made     made;
	vn_tensor   z;
	vn_measured m;
	vn_status   st;

	*error = (double)INFINITY;
	vn_trial_number_put(f->h, x);
	if ((st = vn_trial_apply(t, f->h, &made, err)) || !made.plan) {
		vn_made_finish(&made);
		return st;
	}
	if (!(st = vn_recompute_run(t->recompute, made.plan, made.weights, VN_OWN_WIDTH, &z, err))) {
		if (t->part)
			vn_head_part_splice(t->part, &z, &t->own);
		st = vn_measure_brief(&z, &t->site->cand, t->site->axes, t->opened->request.options->threads, &m, err);
		vn_tensor_free(&z);
		/* relative to the candidate's size, so that a prediction of enormous numbers does not
		 * look good */
		*error = !st && m.finite ? m.value[VN_M_NMSE] : (double)INFINITY;
	}
	vn_made_finish(&made);
	return st;
}

#define NEARER 0.75 /* a grid's best point is refined if it leaves no more of the error */

vn_status vn_fit_constant(vn_case *t, vn_trial *h, vn_range in, vn_error *err)
{
	const double enough = in.vague ? NEARER * t->x->unmodified.residual.local : (double)INFINITY;
	vn_least     least;
	vn_status    st;

	vn_trial_constant_put(h, vn_finding_constant(h->finding), in.low);
	st = vn_search_scale(error_at, &(fit) { t, h }, in, enough, &least, err);
	return st || !isfinite(least.error) ? st : vn_fit_digits(t, h, least.x, err);
}

vn_status vn_case_best_whole(vn_case *t, vn_trial *h, int64_t low, int64_t high, vn_least *best, vn_error *err)
{
	const vn_status st = vn_search_whole(error_at, &(fit) { t, h }, low, high, best, err);

	vn_trial_number_put(h, best->x);
	return st;
}

/* ---- whole numbers --------------------------------------------------------------------------- */

enum { BESIDE = 64 }; /* numbers tried on each side */

static vn_status score_with(vn_case *t, const vn_trial *h, double number, vn_trial *with, vn_error *err)
{
	*with = *h;
	vn_trial_number_put(with, number);
	return vn_score(t, with, err);
}

/* How far whole numbers, starting at `from`, fit as well in that direction. *last: the last that
 * does. */
static vn_status go_on(vn_case *t, const vn_trial *h, int64_t from, int64_t to, int64_t *last, vn_error *err)
{
	const int by = to < from ? -1 : 1;
	vn_trial  with;
	vn_status st = VN_OK;

	*last = from;
	for (int64_t n = from; n != to && (n - from) * by < BESIDE;) {
		n += by;
		if ((st = score_with(t, h, (double)n, &with, err)) || !(with.limit_fraction <= 1))
			break;
		*last = n;
	}
	return st;
}

vn_status vn_case_as_good(vn_case *t, const vn_trial *h, int64_t at, vn_whole_range in, vn_whole_range *good,
                          vn_error *err)
{
	const vn_status st = go_on(t, h, at, in.low, &good->low, err);
	return st ? st : go_on(t, h, at, in.high, &good->high, err);
}

vn_status vn_fit_whole(vn_case *t, vn_trial *h, int64_t best, int64_t low, int64_t high, vn_error *err)
{
	vn_trial  with, least = { .limit_fraction = (double)INFINITY };
	int64_t   at = best;
	vn_status st = VN_OK;

	for (int64_t n = best - 1; !st && n <= best + 1; n++)
		if (n >= low && n <= high && !(st = score_with(t, h, (double)n, &with, err)) &&
		    with.limit_fraction < least.limit_fraction) {
			least = with;
			at = n;
		}
	vn_whole_range good = { at, at };
	if (!st && least.limit_fraction <= 1)
		st = vn_case_as_good(t, &least, at, (vn_whole_range) { low, high }, &good, err);
	if (st || !isfinite(least.limit_fraction))
		return st;
	*h = least;
	h->first = good.low != good.high ? good.low : 0;
	h->last = good.low != good.high ? good.high : 0;
	vn_case_keep(t->x, h);
	return VN_OK;
}

/* ---- numbers of some digits ------------------------------------------------------------------ */

vn_status vn_fit_digits(vn_case *t, vn_trial *h, double x, vn_error *err)
{
	vn_trial         exact, with;
	vn_round_numbers written = { .x = x, .most = 6, .near = true };
	double           number;
	vn_status        st = score_with(t, h, x, &exact, err);

	if (st || isnan(exact.limit_fraction))
		return st;
	const double most = VN_EXPLAIN_APART * fmax(exact.limit_fraction, VN_EXPLAIN_LEAST / VN_LOCAL_LIMIT);
	*h = exact;
	while (!st && vn_next_round_number(&written, &number))
		if (!(st = score_with(t, &exact, number, &with, err)) && with.limit_fraction < most) {
			*h = with;
			break;
		}
	if (!st)
		vn_case_keep(t->x, h);
	return st;
}
