/* causal_conv.c: causal convolution of each channel by itself. */
#include "libref/ops/ops.h"

#include "libref/base/clones.h"
#include "libref/ops/exp.h"
#include "libref/ops/intermediate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHARE = 512 }; /* channels at a time, whose sums stay in the L1 cache */

/* y (n): silu of the sums, with the intermediate rounding of other implementations. Sums without
 * activation are rounded like any output. */
/* The first `silu` channels are activated. */
static void act_rounded(real *y, const double *sum, int64_t silu, int64_t n, const vn_experiment *e)
{
	for (int64_t i = 0; i < n; i++) {
		const double u = vn_in_format(sum[i], e->conv.rounding);
		y[i] = (real)(i >= silu         ? u
		              : e->conv.formula ? vn_act_rounded(u, VN_SILU, e->conv.rounding, false)
		                                : u / (1.0 + exp(-u)));
	}
}

/* The number of the n channels from `from` on that come before channel `end`. */
static int64_t count_before(int64_t end, int64_t from, int64_t n)
{
	if (end < from)
		return 0;
	return end - from < n ? end - from : n;
}

/* Channels [from, from + n) of y (X), for one token. x: its row and the J-1 rows before it,
 * oldest first; w: (J,X) taps. */
VN_CLONES
static void convolve_channels(real *y, const real *const *x, const double *w, const REAL(vn_conv) * a, int64_t from,
                              int64_t n)
{
	const vn_experiment *e = a->e;
	const int64_t        X = a->c->conv.channels, J = a->c->conv.taps;
	const int            linear = e ? e->conv.linear : 0;
	double               sum[SHARE];

	memset(sum, 0, sizeof sum);
	for (int64_t j = 0; j < J; j++) {
		const real   *xj = x[j] + from;
		const double *wj = w + j * X + from;
		for (int64_t c = 0; c < n; c++)
			sum[c] += wj[c] * (double)xj[c];
	}
	const int64_t silu = linear ? count_before(linear - 1, from, n) : n; /* the first channels */
	if (e && e->conv.rounding) {
		act_rounded(y + from, sum, silu, n, e);
		return;
	}
	for (int64_t c = silu; c < n; c++)
		y[from + c] = (real)sum[c];
	for (int64_t c = 0; c < silu; c++)
		y[from + c] = (real)(sum[c] / (1.0 + vn_exp(-sum[c])));
}

bool REAL(vn_causal_conv)(real *y, const REAL(vn_conv) * a)
{
	const real   *x = a->x;
	real         *state = a->state;
	const bool    forgets = a->e && a->e->conv.forgets;
	const int64_t T = a->T, X = a->c->conv.channels, J = a->c->conv.taps, ahead = a->e ? a->e->conv.ahead : 0;
	const int64_t shares = (X + SHARE - 1) / SHARE;
	double       *taps = malloc((size_t)(J * X) * sizeof *taps);                    /* (J,X) */
	real         *none = ahead || forgets ? calloc((size_t)X, sizeof *none) : NULL; /* (X) */
	bool          good = taps && (none || !(ahead || forgets));

	if (!good) {
		VN_FREE(taps, none);
		return false;
	}
	for (int64_t c = 0; c < X; c++)
		for (int64_t j = 0; j < J; j++)
			taps[j * X + c] = (double)a->w[c * J + j];

#pragma omp parallel num_threads(a->threads) reduction(&& : good)
	{
		const real **row = malloc((size_t)J * sizeof *row);
		good = row;
#pragma omp for schedule(static)
		for (int64_t i = 0; i < T * shares; i++) {
			const int64_t t = i / shares, from = i % shares * SHARE;
			if (!row)
				continue; /* a thread without memory must reach the loop, which a team shares */
			const int64_t first = forgets ? vn_call_row(a->past, a->begins, t) : -J;
			for (int64_t j = 0; j < J; j++) {
				const int64_t at = t - (J - 1) + j + ahead;
				row[j] = at >= T || at < first ? none : at < 0 ? state + (J - 1 + at) * X : x + at * X;
			}
			convolve_channels(y + t * X, row, taps, a, from, X - from < SHARE ? X - from : SHARE);
		}
		free(row);
	}
	VN_FREE(taps, none);
	/* Ascending order, because it reads later rows. */
	for (int64_t i = 0; i < J - 1; i++) {
		const int64_t at = T - (J - 1) + i;
		memmove(state + i * X, at < 0 ? state + (J - 1 + at) * X : x + at * X, (size_t)X * sizeof *x);
	}
	return good;
}
