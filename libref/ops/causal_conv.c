/* causal_conv.c: causal convolution of each channel by itself. */
#include "libref/ops/ops.h"

#include "libref/base/clones.h"
#include "libref/ops/exp.h"

#include <stdlib.h>
#include <string.h>

enum { SHARE = 512 }; /* channels at a time: their sums stay in the first cache */

/* y (n): one token of n channels. x: its row and the J-1 before it, oldest first; w: (J) rows of n taps. */
VN_CLONES
static void channels(real *y, const real *const *x, const double *w, int64_t X, int64_t J, int64_t from, int64_t n, int linear)
{
	double sum[SHARE];

	memset(sum, 0, sizeof sum);
	for (int64_t j = 0; j < J; j++) {
		const real   *xj = x[j] + from;
		const double *wj = w + j * X + from;
		for (int64_t c = 0; c < n; c++)
			sum[c] += wj[c] * (double)xj[c];
	}
	const int64_t silu = !linear ? n : linear - 1 < from ? 0 : linear - 1 - from < n ? linear - 1 - from : n;
	for (int64_t c = silu; c < n; c++)
		y[from + c] = (real)sum[c];
	for (int64_t c = 0; c < silu; c++)
		y[from + c] = (real)(sum[c] / (1.0 + vn_exp(-sum[c])));
}

bool REAL(vn_causal_conv)(real *y, const real *x, const real *w, real *state, int64_t T, int64_t X, int64_t J, int linear, int ahead,
                          bool forgets, int threads)
{
	const int64_t shares = (X + SHARE - 1) / SHARE;
	double       *taps = malloc((size_t)(J * X) * sizeof *taps); /* (J,X) */
	real         *none = ahead || forgets ? calloc((size_t)X, sizeof *none) : NULL; /* (X) */
	int           failed = !taps || ((ahead || forgets) && !none);

	if (failed) {
		free(taps);
		free(none);
		return false;
	}
	for (int64_t c = 0; c < X; c++)
		for (int64_t j = 0; j < J; j++)
			taps[j * X + c] = (double)w[c * J + j];

#pragma omp parallel num_threads(threads)
	{
		const real **row = malloc((size_t)J * sizeof *row);
		if (!row) {
#pragma omp atomic write
			failed = 1;
		}
#pragma omp for schedule(static)
		for (int64_t i = 0; i < T * shares; i++) {
			const int64_t t = i / shares, from = i % shares * SHARE;
			if (!row)
				continue; /* but come to the loop: a team shares it */
			for (int64_t j = 0; j < J; j++) {
				const int64_t at = t - (J - 1) + j + ahead;
				row[j] = at >= T || (at < 0 && forgets) ? none : at < 0 ? state + (J - 1 + at) * X : x + at * X;
			}
			channels(y + t * X, row, taps, X, J, from, X - from < SHARE ? X - from : SHARE, linear);
		}
		free(row);
	}
	free(taps);
	free(none);
	/* Ascending, from rows further on. */
	for (int64_t i = 0; i < J - 1; i++) {
		const int64_t at = T - (J - 1) + i;
		memmove(state + i * X, at < 0 ? state + (J - 1 + at) * X : x + at * X, (size_t)X * sizeof *x);
	}
	return !failed;
}
