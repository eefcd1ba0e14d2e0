/* floors.c: see floors.h. */
#include "compare/replayed/floors.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

/* Mean of x^2 over the square of the next lower power of two, for numbers of any size. */
#define IN_BINADE 0.54
#define SUMS      400

static double least_normal(vn_dtype d)
{
	switch (d) {
	case VN_F16:
	case VN_F8_E5M2: return ldexp(1, -14);
	case VN_F8_E4M3: return ldexp(1, -6);
	case VN_F64: return ldexp(1, -500); /* whose square is a number */
	default: return ldexp(1, -126);
	}
}

/* A rounding of h: square * h^2 + constant. */
typedef struct rounding {
	double square, constant;
} rounding;

static rounding rounding_of(vn_dtype format)
{
	const double eps = ldexp(1, -vn_dtype_digits(format)), least = least_normal(format) * eps;
	const double times = (vn_dtype_digits(format) > 10 ? SUMS : 1) / 12.0;
	return (rounding) { times * eps * eps * IN_BINADE, times * least * least };
}

/* Measured on an H200: at most 4.7 and 120 floors, within a limit of 4. */
double vn_floors_allowed(const char *op, vn_dtype format)
{
	if (strncasecmp(op, "conv", 4) != 0)
		return 1;
	return vn_dtype_digits(format) > 10 ? 40 : 1.5;
}

enum { BLOCK = 512, MOST_ROWS = 1 << 20 };

/* Some of the numbers, as they are measured. error: of the candidate; floor, own: F - A and its
 * square's least value. Where one of the three is infinite, all are 0. */
typedef struct floor_block {
	double  h[BLOCK], error[BLOCK], floor[BLOCK], own[BLOCK];
	int64_t n, finite, bad;
} floor_block;

/* 0: finite; else which infinity, or 2 for a NaN. */
static int kind_of(double x, double top)
{
	return fabs(x) < top ? 0 : isnan(x) ? 2 : x > 0 ? 1 : -1;
}

/* Is c, like f, the least number of a narrower format than the tensor's, where h is infinite? Such
 * a mask was made in one format and joined a tensor of another: h's is the least of a wider one. */
static bool is_narrow_mask(double c, double h, double f, double top)
{
	const double half = vn_dtype_max(VN_F16) / 2;
	return fabs(f) >= half && fabs(c - f) <= fabs(f) / 100 && kind_of(f, half) == kind_of(h, top);
}

static void read_numbers(const vn_tensor *t, int64_t from, int64_t n, double *x)
{
	const unsigned char *data = t->data;
	vn_to_f64(x, data + (size_t)from * vn_dtype_size(t->dtype), t->dtype, (size_t)n);
}

static void read_block(const vn_floor_tensors *x, int64_t from, int64_t n, floor_block *b)
{
	const double   top = vn_dtype_max(x->format) / 2;
	const rounding r = rounding_of(x->format);
	double        *c = b->error, *f = b->floor;

	read_numbers(x->expected, from, n, b->h);
	read_numbers(x->cand, from, n, c);
	read_numbers(x->floor ? x->floor : x->expected, from, n, f);
	b->n = b->finite = n;
	b->bad = 0;
	for (int64_t i = 0; i < n; i++) {
		const double h = b->h[i];
		const bool   good = (fabs(c[i]) < top) & (fabs(h) < top) & (fabs(f[i]) < top);
		if (!good) {
			b->bad += kind_of(c[i], top) != kind_of(h, top) && !is_narrow_mask(c[i], h, f[i], top);
			b->finite--;
			b->h[i] = c[i] = f[i] = b->own[i] = 0;
			continue;
		}
		b->own[i] = r.square * h * h + r.constant;
		c[i] -= h;
		f[i] -= h;
	}
}

/* Sums over all numbers. */
typedef struct floor_sums {
	double  ee, ff, rr, hh;     /* squares of error, floor, rounding (own), result */
	double  eh, fh, eehh, ehhh; /* for the slopes */
	double  ffhh, fhhh, hhhh, rhh;
	double  most_e, most_f, most_r; /* largest squares */
	double  gg, rr_ref;             /* of A - R, and of R */
	int64_t bad, finite, given;
} floor_sums;

static void add_block(floor_sums *s, const floor_block *b)
{
	for (int64_t i = 0; i < b->n; i++) {
		const double e = b->error[i], f = b->floor[i], h = b->h[i], r = b->own[i];
		const double ee = e * e, ff = f * f, hh = h * h;
		s->ee += ee;
		s->ff += ff;
		s->rr += r;
		s->hh += hh;
		s->eh += e * h;
		s->fh += f * h;
		s->eehh += ee * hh;
		s->ffhh += ff * hh;
		s->ehhh += e * h * hh;
		s->fhhh += f * h * hh;
		s->hhhh += hh * hh;
		s->rhh += r * hh;
		s->most_e = ee > s->most_e ? ee : s->most_e;
		s->most_f = ff > s->most_f ? ff : s->most_f;
		s->most_r = r > s->most_r ? r : s->most_r;
	}
	s->bad += b->bad;
	s->finite += b->finite;
}

static void add_given(floor_sums *s, const floor_block *b, const vn_floor_tensors *x, int64_t from)
{
	double ref[BLOCK];

	read_numbers(x->ref, from, b->n, ref);
	for (int64_t i = 0; i < b->n; i++) {
		if (!isfinite(ref[i]) || b->own[i] == 0)
			continue;
		s->gg += (b->h[i] - ref[i]) * (b->h[i] - ref[i]);
		s->rr_ref += ref[i] * ref[i];
		s->given++;
	}
}

/* Sums of squares over a row: of the error, the floor, the rounding. */
typedef struct row_sums {
	double e, f, r;
} row_sums;

/* Adds the numbers of blocks to their rows, which follow each other. */
typedef struct row_walk {
	row_sums *row; /* (rows); NULL: they are not kept */
	row_sums  now; /* of the row that is not complete */
	int64_t   width, in_row, rows;
} row_walk;

/* The row whose error is largest, in floors. */
typedef struct worst_row {
	double error, floor;
} worst_row;

static void take_row(worst_row *w, const row_sums *row, double least)
{
	const double floor = fmax(fmax(row->f, row->r), least);

	if (row->e > 0 && (w->floor == 0 || row->e * w->floor > w->error * floor))
		*w = (worst_row) { row->e, floor };
}

/* worst: to take each complete row; NULL: to keep it. */
static void add_rows(row_walk *k, const floor_block *b, worst_row *worst, double least)
{
	for (int64_t i = 0; i < b->n; i++) {
		k->now.e += b->error[i] * b->error[i];
		k->now.f += b->floor[i] * b->floor[i];
		k->now.r += b->own[i];
		if (++k->in_row < k->width)
			continue;
		if (worst)
			take_row(worst, &k->now, least);
		else
			k->row[k->rows++] = k->now;
		k->now = (row_sums) { 0 };
		k->in_row = 0;
	}
}

/* Finds it among rows that were kept, or goes over all numbers again. least: floor of any row. */
static worst_row find_row(const vn_floor_tensors *x, const row_walk *kept, double least)
{
	const int64_t n = vn_shape_count(&x->cand->shape);
	worst_row     w = { 0 };
	row_walk      k = { .width = kept->width };
	floor_block   b;

	for (int64_t i = 0; i < kept->rows; i++)
		take_row(&w, &kept->row[i], least);
	for (int64_t from = 0; !kept->row && from < n; from += b.n) {
		read_block(x, from, n - from < BLOCK ? n - from : BLOCK, &b);
		add_rows(&k, &b, &w, least);
	}
	return w;
}

/* Sum of ((t - s h) h)^2, from its parts. */
static double around(double tthh, double thhh, double hhhh, double s)
{
	return fmax(0, tthh - 2 * s * thhh + s * s * hhhh);
}

static vn_floor_slope slope_of(const floor_sums *s)
{
	const double hh = fmax(s->hh, DBL_MIN), own = s->eh / hh, floor = s->fh / hh;
	const double square = around(s->eehh, s->ehhh, s->hhhh, own) + around(s->ffhh, s->fhhh, s->hhhh, floor) + s->rhh;
	return (vn_floor_slope) { own, floor, fabs(own - floor) / fmax(sqrt(square) / hh, DBL_MIN) };
}

void vn_floors_measure(const vn_floor_tensors *x, vn_replayed *l, vn_floor_slope *slope)
{
	const vn_shape *shape = &x->cand->shape;
	const int64_t   n = vn_shape_count(shape), width = shape->rank ? shape->dim[shape->rank - 1] : 1;
	const double    rows = width ? (double)(n / width) : 1;
	row_walk        k = { .width = width };
	floor_sums      s = { 0 };
	floor_block     b;

	if (n > 0 && rows <= MOST_ROWS) /* else, or without memory, they are read twice */
		k.row = malloc((size_t)rows * sizeof *k.row);
	for (int64_t from = 0; from < n; from += b.n) {
		read_block(x, from, n - from < BLOCK ? n - from : BLOCK, &b);
		add_block(&s, &b);
		if (k.row)
			add_rows(&k, &b, NULL, 0);
		if (x->ref)
			add_given(&s, &b, x, from);
	}
	const worst_row w = find_row(x, &k, s.ff / fmax(rows, 1) / 4);
	const double    size = s.hh > 0 ? s.hh : 1; /* a result of zeros has no scale */
	*l = (vn_replayed) {
		.local = s.ee / size,
		.floor = fmax(fmax(s.ff, s.rr) * x->allow / size, DBL_MIN),
		.local_token = w.error / size * rows,
		.floor_token = fmax(w.floor * x->allow / size * rows, DBL_MIN),
		.local_max = sqrt(s.most_e),
		.floor_max = fmax(sqrt(fmax(s.most_f, s.most_r) * x->allow), DBL_MIN),
		.inherited = s.given ? s.gg / (s.rr_ref > 0 ? s.rr_ref : 1) : (double)NAN,
		.gain = (double)NAN,
		.bad = s.bad,
		.not_measured = s.finite == 0,
		.independent_numbers = n,
		.span = 1,
		.charged_to = -1,
	};
	*slope = slope_of(&s);
	free(k.row);
}
