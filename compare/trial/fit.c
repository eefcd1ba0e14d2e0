/* fit.c: see fit.h. */
#include "compare/trial/fit.h"
#include "compare/trial/score.h"
#include "compare/trial/trial_apply.h"

#include <math.h>

/* ---- by looking for the least error ---------------------------------------------------------- */

typedef struct fit {
	vn_case  *t;
	vn_trial *h;
} fit;

/* The nmse that is left with this constant. */
static double error_at(void *of, double x)
{
	const fit  *f = of;
	vn_case    *t = f->t;
	double      error = (double)INFINITY;
	vn_made     made;
	vn_tensor   z;
	vn_measured m;

	vn_trial_number_put(f->h, x);
	vn_trial_apply(t, f->h, &made);
	if (made.plan && vn_case_run(t, made.plan, made.weights, VN_OWN_WIDTH, &z)) {
		if (t->part)
			vn_head_part_splice(t->part, &z, &t->own);
		/* relative to the candidate's size, so that a prediction of enormous numbers does not
		 * look good */
		if (vn_case_made(t, vn_measure_brief(&z, &t->site->cand, t->site->axes, t->opened->request.options->threads, &m,
		                                     vn_case_error(t))) &&
		    m.finite)
			error = m.value[VN_M_NMSE];
		vn_tensor_free(&z);
	}
	vn_made_finish(&made);
	return error;
}

#define NEARER 0.75 /* a grid's best point is refined if it leaves no more of the error */

void vn_fit_constant(vn_case *t, vn_trial *h, vn_range in)
{
	const double enough = in.vague ? NEARER * t->x->unmodified.residual.local : (double)INFINITY;

	vn_trial_constant_put(h, vn_finding_constant(h->finding), in.low);
	const vn_least least = vn_search_scale(error_at, &(fit) { t, h }, in, enough);
	if (isfinite(least.error))
		vn_fit_digits(t, h, least.x);
}

vn_least vn_case_best_whole(vn_case *t, vn_trial *h, int64_t low, int64_t high)
{
	const vn_least best = vn_search_whole(error_at, &(fit) { t, h }, low, high);

	vn_trial_number_put(h, best.x);
	return best;
}

/* ---- whole numbers --------------------------------------------------------------------------- */

enum { BESIDE = 64 }; /* numbers tried on each side */

static vn_trial scored_with(vn_case *t, const vn_trial *h, double number)
{
	vn_trial with = *h;

	vn_trial_number_put(&with, number);
	vn_score(t, &with);
	return with;
}

/* How far whole numbers, starting at `from`, fit as well in that direction: the last that does. */
static int64_t last_as_good(vn_case *t, const vn_trial *h, int64_t from, int64_t to)
{
	const int by = to < from ? -1 : 1;
	int64_t   n = from;

	while (n != to && (n - from) * by < BESIDE && scored_with(t, h, (double)(n + by)).limit_fraction <= 1)
		n += by;
	return n;
}

vn_whole_range vn_case_as_good(vn_case *t, const vn_trial *h, int64_t at, vn_whole_range in)
{
	return (vn_whole_range) { last_as_good(t, h, at, in.low), last_as_good(t, h, at, in.high) };
}

void vn_fit_whole(vn_case *t, vn_trial *h, int64_t best, int64_t low, int64_t high)
{
	vn_trial with, least = { .limit_fraction = (double)INFINITY };
	int64_t  at = best;

	for (int64_t n = best - 1; n <= best + 1; n++)
		if (n >= low && n <= high && (with = scored_with(t, h, (double)n)).limit_fraction < least.limit_fraction) {
			least = with;
			at = n;
		}
	vn_whole_range good = { at, at };
	if (least.limit_fraction <= 1)
		good = vn_case_as_good(t, &least, at, (vn_whole_range) { low, high });
	if (!isfinite(least.limit_fraction))
		return;
	*h = least;
	h->first = good.low != good.high ? good.low : 0;
	h->last = good.low != good.high ? good.high : 0;
	vn_case_keep(t->x, h);
}

/* ---- numbers of some digits ------------------------------------------------------------------ */

void vn_fit_digits(vn_case *t, vn_trial *h, double x)
{
	const vn_trial   exact = scored_with(t, h, x);
	vn_trial         with;
	vn_round_numbers written = { .x = x, .most = 6, .near = true };
	double           number;

	if (isnan(exact.limit_fraction))
		return;
	const double most = VN_EXPLAIN_APART * fmax(exact.limit_fraction, VN_EXPLAIN_LEAST / VN_LOCAL_LIMIT);
	*h = exact;
	while (vn_next_round_number(&written, &number))
		if ((with = scored_with(t, &exact, number)).limit_fraction < most) {
			*h = with;
			break;
		}
	vn_case_keep(t->x, h);
}
