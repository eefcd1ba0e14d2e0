/* rows.c: what an experiment makes of the rows of a call. */
#include "libref/ops/ops.h"

#include <math.h>
#include <string.h>

/* The row of x to use in place of row t; -1: none. */
static int64_t find_source(const vn_experiment *e, int64_t past, int64_t t, int64_t T)
{
	const int64_t from = t + e->rows.by, half = (T + 1) / 2;

	if (e->rows.form == VN_ROWS_SHIFTED && past == 0)
		return from >= 0 && from < T ? from : -1;
	return e->rows.form == VN_ROWS_IN_TURN ? t % 2 * half + t / 2 : t;
}

/* Whether a row lies in a tile that belongs to another. */
static bool in_other(const vn_experiment *e, int64_t t)
{
	const int64_t tile = t / e->rows.by;
	return e->rows.inner ? tile == e->rows.inner - 1 : tile % 2 == 1;
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

void REAL(vn_rows)(real *y, const real *x, const real *other, int64_t past, int64_t T, int64_t N,
                   const vn_experiment *e)
{
	const int64_t inner = e->rows.inner, by = e->rows.by;

	for (int64_t t = 0; t < T; t++) {
		const int64_t from = find_source(e, past, t, T);
		if (e->rows.form == VN_ROWS_LOG_SOFTMAX)
			log_softmax(y + t * N, x + t * N, N);
		else if (from < 0)
			memset(y + t * N, 0, (size_t)N * sizeof *y);
		else if (e->rows.form == VN_ROWS_ROUND) {
			memcpy(y + t * N, x + t * N + by, (size_t)(N - by) * sizeof *y);
			memcpy(y + t * N + N - by, x + t * N, (size_t)by * sizeof *y);
		} else
			memcpy(y + t * N, (e->rows.form == VN_ROWS_TILES && in_other(e, t) ? other : x) + from * N,
			       (size_t)N * sizeof *y);
	}
	for (int64_t i = 0; e->rows.form == VN_ROWS_PARTS_FIRST && i < T * N; i++) {
		const int64_t part = i / (inner * T), t = i / inner % T;
		y[i] = x[t * N + part * inner + i % inner];
	}
}
