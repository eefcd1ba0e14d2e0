/* tokens.c: sums of single tokens' rows, and the metrics of the worst one.
 *
 * A tiny row (the rest after two large numbers cancel, the value of a token that nothing attends
 * to) is measured against its neighbours, like an element near zero: rows below an eighth of the
 * median row's norm count as if they had that norm. The median is used so that neither a few huge
 * tokens nor a few zero ones decide.
 */
#include "compare/metrics/average.h"
#include "compare/metrics/tokens.h"
#include "libref/base/order.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void to_scale(vn_squares *s, const int scale[3])
{
	const int r = s->scale[0] - scale[0], c = s->scale[1] - scale[1], d = s->scale[2] - scale[2];
	if (r == 0 && c == 0 && d == 0)
		return; /* the usual path, without float64 */
	s->rr = ldexp(s->rr, 2 * r);
	s->cc = ldexp(s->cc, 2 * c);
	s->rc = ldexp(s->rc, r + c);
	s->dd = ldexp(s->dd, 2 * d);
	s->ad = ldexp(s->ad, d);
	memcpy(s->scale, scale, sizeof s->scale);
}

/* The larger of two exponents; zeros have no exponent. */
static int common_exponent(double x, int of_x, double y, int of_y)
{
	return y == 0.0 || (x != 0.0 && of_x > of_y) ? of_x : of_y;
}

void vn_squares_add(vn_squares *to, const vn_squares *s)
{
	vn_squares x = *s;
	const int  scale[3] = { common_exponent(to->rr, to->scale[0], x.rr, x.scale[0]),
		                    common_exponent(to->cc, to->scale[1], x.cc, x.scale[1]),
		                    common_exponent(to->ad, to->scale[2], x.ad, x.scale[2]) };
	to_scale(to, scale);
	to_scale(&x, scale);
	to->rr += x.rr;
	to->cc += x.cc;
	to->rc += x.rc;
	to->dd += x.dd;
	to->ad += x.ad;
}

double vn_cosine(const vn_squares *s)
{
	if (s->rr == 0.0 && s->cc == 0.0)
		return 1.0;
	if (s->rr == 0.0 || s->cc == 0.0)
		return 0.0;
	const double x = s->rc / (sqrt(s->rr) * sqrt(s->cc));
	return x > 1.0 ? 1.0 : x < -1.0 ? -1.0 : x; /* a NaN stays */
}

static vn_size size_of(const vn_squares *s)
{
	vn_size z;
	z.fraction = frexp(s->rr, &z.exponent);
	z.exponent = z.fraction > 0.0 ? z.exponent + 2 * s->scale[0] : INT_MIN;
	return z;
}

/* d.d over that size. */
static double over_size(const vn_squares *s, vn_size size)
{
	if (s->dd == 0.0)
		return 0.0;
	return size.fraction > 0.0 ? ldexp(s->dd / size.fraction, 2 * s->scale[2] - size.exponent) : (double)INFINITY;
}

double vn_nmse(const vn_squares *s)
{
	return over_size(s, size_of(s));
}

double vn_scale(const vn_squares *s, double n)
{
	if (s->rr == 0.0)
		return s->cc == 0.0 ? 0.0 : (double)INFINITY;
	return vn_beyond(fabs(ldexp(s->rc / s->rr, s->scale[1] - s->scale[0]) - 1.0), vn_nmse(s), n);
}

double vn_beyond(double off, double nmse, double n)
{
	if (!(off < 1e6)) /* unrelated data, whose square may overflow */
		return off;
	/* The part of nmse that the factor does not explain. If that is tiny,
	 * its digits have cancelled. */
	const double beyond = off - 6.0 * sqrt(fmax(nmse - off * off, 0x1p-20 * nmse) / n);
	return beyond < 0.0 ? 0.0 : beyond; /* a NaN stays */
}

VN_ORDER_BY(by_size, vn_size, VN_ORDER(x->exponent, y->exponent), VN_ORDER(x->fraction, y->fraction))

/* size (n): scratch. */
static vn_size median_size(const vn_squares *row, int64_t n, vn_size *size)
{
	double *plain = (double *)(void *)size;
	bool    scaled = false;
	for (int64_t t = 0; t < n && !scaled; t++) {
		plain[t] = row[t].rr;
		scaled = row[t].scale[0] != 0;
	}
	if (!scaled) /* the usual case: plain numbers, sorted without comparisons */
		return size_of(&(vn_squares) { .rr = vn_median_of(plain, n) });
	for (int64_t t = 0; t < n; t++)
		size[t] = size_of(&row[t]);
	qsort(size, (size_t)n, sizeof *size, by_size);
	return size[vn_quantile_index(n, 0.5)];
}

void vn_measure_tokens(const vn_squares *row, int64_t n, vn_size *size, vn_measured *m)
{
	double low = INFINITY, high = -1.0;

	vn_size least = median_size(row, n, size);
	if (least.fraction > 0.0)
		least.exponent -= 6; /* 2^-6 is an eighth of the norm */
	for (int64_t t = 0; t < n; t++) {
		const vn_size own = size_of(&row[t]);
		const double  cosine = vn_cosine(&row[t]), nmse = over_size(&row[t], by_size(&own, &least) < 0 ? least : own);
		if (!(cosine >= low)) { /* a NaN is the worst */
			low = cosine;
			m->worst_token = t;
		}
		if (!(nmse <= high)) {
			high = nmse;
			m->worst_nmse_token = t;
		}
	}
	m->value[VN_M_WORST_TOKEN_COSINE] = low;
	m->value[VN_M_WORST_TOKEN_NMSE] = high;
}
