/* rows.c: what an experiment makes of the rows of a call. */
#include "libref/ops/ops.h"

#include <math.h>
#include <string.h>

/* The row of x to use in place of row t; -1: none. */
static int64_t source(const vn_consts *c, int64_t past, int64_t t, int64_t T)
{
	const int64_t from = t + c->rows.by, half = (T + 1) / 2;

	if (c->rows.form == VN_ROWS_SHIFTED && past == 0)
		return from >= 0 && from < T ? from : -1;
	return c->rows.form == VN_ROWS_IN_TURN ? t % 2 * half + t / 2 : t;
}

/* Whether a row lies in a tile that belongs to another. */
static bool in_other(const vn_consts *c, int64_t t)
{
	const int64_t tile = t / c->rows.by;
	return c->rows.inner ? tile == c->rows.inner - 1 : tile % 2 == 1;
}

static void log_softmax(real *y, const real *x, int64_t N)
{
	double top = -INFINITY, sum = 0.0;

	for (int64_t n = 0; n < N; n++)
		top = (double)x[n] > top ? (double)x[n] : top;
	for (int64_t n = 0; n < N; n++)
		sum += exp((double)x[n] - top);
	for (int64_t n = 0; n < N; n++)
		y[n] = (real)((double)x[n] - top - log(sum));
}

void REAL(vn_rows)(real *y, const real *x, const real *other, int64_t past, int64_t T, int64_t N, const vn_consts *c)
{
	const int64_t inner = c->rows.inner, by = c->rows.by;

	for (int64_t t = 0; t < T; t++) {
		const int64_t from = source(c, past, t, T);
		if (c->rows.form == VN_ROWS_LOG_SOFTMAX)
			log_softmax(y + t * N, x + t * N, N);
		else if (from < 0)
			memset(y + t * N, 0, (size_t)N * sizeof *y);
		else if (c->rows.form == VN_ROWS_ROUND) {
			memcpy(y + t * N, x + t * N + by, (size_t)(N - by) * sizeof *y);
			memcpy(y + t * N + N - by, x + t * N, (size_t)by * sizeof *y);
		} else
			memcpy(y + t * N, (c->rows.form == VN_ROWS_TILES && in_other(c, t) ? other : x) + from * N,
			       (size_t)N * sizeof *y);
	}
	for (int64_t e = 0; c->rows.form == VN_ROWS_PARTS_FIRST && e < T * N; e++) {
		const int64_t part = e / (inner * T), t = e / inner % T;
		y[e] = x[t * N + part * inner + e % inner];
	}
}
