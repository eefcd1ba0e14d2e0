/* tokens.c: sums of one token's row, and what the worst of them comes to.
 *
 * A row that is next to nothing (what is left when two large numbers cancel, the
 * value of a token nobody attends to) is measured against its neighbours, as an
 * element near zero is: rows below an eighth of the median row's norm count as if
 * they had that. The median, so that neither a few tokens of enormous size nor a
 * few of none decide.
 */
#include "compare/average.h"
#include "compare/measure.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

static void to_scale(vn_squares *s, int scale)
{
	const int by = s->scale - scale;
	s->rr = ldexp(s->rr, 2 * by);
	s->cc = ldexp(s->cc, 2 * by);
	s->rc = ldexp(s->rc, 2 * by);
	s->dd = ldexp(s->dd, 2 * by);
	s->ad = ldexp(s->ad, by);
	s->scale = scale;
}

void vn_squares_add(vn_squares *to, const vn_squares *s)
{
	vn_squares x = *s;
	if (to->rr + to->cc == 0.0) /* zeros have no scale of their own */
		to_scale(to, x.scale);
	else if (x.rr + x.cc == 0.0 || x.scale < to->scale)
		to_scale(&x, to->scale);
	else if (x.scale > to->scale)
		to_scale(to, x.scale);
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
	z.exponent = z.fraction > 0.0 ? z.exponent + 2 * s->scale : INT_MIN;
	return z;
}

static int by_size(const void *a, const void *b)
{
	const vn_size *x = a, *y = b;
	if (x->exponent != y->exponent)
		return x->exponent < y->exponent ? -1 : 1;
	return (x->fraction > y->fraction) - (x->fraction < y->fraction);
}

void vn_measure_tokens(const vn_squares *row, int64_t n, vn_size *size, vn_measured *m)
{
	double low = INFINITY, high = -1.0;

	for (int64_t t = 0; t < n; t++)
		size[t] = size_of(&row[t]);
	qsort(size, (size_t)n, sizeof *size, by_size);
	const vn_size median = size[vn_rank(n, 0.5)];
	for (int64_t t = 0; t < n; t++) {
		/* 2^-6: an eighth of the norm. */
		const double least = median.fraction > 0.0 ? ldexp(median.fraction, median.exponent - 2 * row[t].scale - 6) : 0.0;
		const double cosine = vn_cosine(&row[t]), nmse = row[t].dd == 0.0 ? 0.0 : row[t].dd / fmax(row[t].rr, least);
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
