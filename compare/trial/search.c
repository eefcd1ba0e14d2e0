/* search.c: see search.h. */
#include "compare/trial/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { COARSE = 17, FINE = 36 };
#define GOLDEN 0.6180339887498949

typedef struct number_search {
	vn_error_of error_of;
	void       *of;
	vn_least    best;
} number_search;

static double evaluate_at(number_search *s, double x)
{
	const double error = s->error_of(s->of, x);

	if (error < s->best.error)
		s->best = (vn_least) { x, error };
	return error;
}

/* u between a and b is log x. */
static void by_golden_section(number_search *s, double a, double b)
{
	double u = b - GOLDEN * (b - a), v = a + GOLDEN * (b - a), at_u = evaluate_at(s, exp(u)),
		   at_v = evaluate_at(s, exp(v));

	for (int i = 0; i < FINE; i++)
		if (at_u < at_v) {
			b = v, v = u, at_v = at_u, u = b - GOLDEN * (b - a);
			at_u = evaluate_at(s, exp(u));
		} else {
			a = u, u = v, at_u = at_v, v = a + GOLDEN * (b - a);
			at_v = evaluate_at(s, exp(v));
		}
}

vn_least vn_search_scale(vn_error_of error_of, void *of, vn_range in, double enough)
{
	const double  from = log(in.low), step = (log(in.high) - from) / (in.steps - 1);
	number_search s = { error_of, of, { 0, (double)INFINITY } };
	double        best = from;

	for (int i = 0; i < in.steps; i++) {
		const double before = s.best.error;
		best = evaluate_at(&s, exp(from + i * step)) < before ? from + i * step : best;
	}
	if (s.best.error < enough)
		by_golden_section(&s, best - step, best + step);
	else
		s.best.error = (double)INFINITY;
	return s.best;
}

vn_least vn_search_whole(vn_error_of error_of, void *of, int64_t low, int64_t high)
{
	number_search s = { error_of, of, { (double)low, (double)INFINITY } };

	for (int64_t step = 0; step != 1;) {
		step = (high - low) / COARSE + 1;
		s.best.error = (double)INFINITY;
		for (int64_t n = low; n <= high; n += step)
			evaluate_at(&s, (double)n);
		const int64_t best = (int64_t)s.best.x;
		low = best - step > low ? best - step : low;
		high = best + step < high ? best + step : high;
	}
	return s.best;
}

vn_least vn_search_grid(vn_error_of error_of, void *of, vn_range in, int finer, int fewer)
{
	const double from = log(in.low), to = log(in.high);
	double       a = from, b = to, best = from, least = (double)INFINITY;

	for (int k = 0; k <= finer; k++) {
		const int    n = k ? fewer : in.steps;
		const double step = (b - a) / (n - 1);
		least = (double)INFINITY;
		for (int i = 0; i < n; i++) {
			const double error = error_of(of, exp(a + i * step));
			if (error < least) {
				least = error;
				best = a + i * step;
			}
		}
		a = fmax(best - 2 * step, from);
		b = fmin(best + 2 * step, to);
	}
	return (vn_least) { exp(best), least };
}

double vn_in_digits(double x, int digits)
{
	char text[40];

	snprintf(text, sizeof text, "%.*g", digits, x);
	return atof(text);
}

bool vn_next_round_number(vn_round_numbers *r, double *number)
{
	const int ways = r->inverse ? 2 : 1, first = r->fewest ? r->fewest : 1;

	while (first + r->given / ways <= r->most) {
		const int digits = first + r->given / ways;
		*number = r->given++ % ways ? 1 / vn_in_digits(1 / r->x, digits) : vn_in_digits(r->x, digits);
		if (!r->near || fabs(*number / r->x - 1) <= 0.02)
			return true;
	}
	return false;
}
