/* tokens.h: sums of squares, and the metrics of single tokens, which follow from them. */
#pragma once

#include "compare/metrics/pair.h"

/* Sums over positions that are finite on both sides. A squared float64 may overflow a double, and
 * one tensor may be as large as the other is small. So r, c and d = c-r are each in units of
 * 2^scale: rr is in units of 4^scale[0], rc in units of 2^(scale[0] + scale[1]). Without float64
 * the scales are 0. */
typedef struct vn_squares {
	double rr, cc, rc, dd; /* r.r, c.c, r.c, d.d */
	double ad;             /* sum |d| */
	int    scale[3];       /* of r, c, d */
} vn_squares;

void vn_squares_add(vn_squares *to, const vn_squares *s);

/* Returns the cosine; 1 if both sides are zero, 0 if one is. */
double vn_cosine(const vn_squares *s);
double vn_nmse(const vn_squares *s);
/* Returns the distance from 1 of the factor a = r.c / r.r, minus 6 standard errors sqrt((nmse -
 * (a-1)^2) / n) (with the nmse at least 2^-20): the part that errors independent of r do not
 * explain. n: positions. */
double vn_scale(const vn_squares *s, double n);

/* Returns the part of `off`, a factor's distance from 1, beyond 6 standard errors for n positions
 * with this nmse. */
double vn_beyond(double off, double nmse, double n);

/* Computes the metrics of single tokens from n > 0 rows. size: (n), scratch. */
typedef struct vn_size {
	double fraction; /* r.r = fraction 2^exponent, as for frexp */
	int    exponent;
} vn_size;
void vn_measure_tokens(const vn_squares *row, int64_t n, vn_size *size, vn_measured *m);
