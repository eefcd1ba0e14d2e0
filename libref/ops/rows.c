/* rows.c: what an experiment makes of the rows of a call. */
#include "libref/ops/ops.h"

#include "libref/base/arrange.h"

#include <math.h>
#include <string.h>

/* Where the T x N numbers of a call come from. */
static vn_arrange arrangement_of(const vn_experiment *e, int64_t past, int64_t T, int64_t N)
{
	const int64_t by = e->rows.by, inner = e->rows.inner;

	switch (e->rows.form) {
	case VN_ROWS_SHIFTED: return (vn_arrange) { VN_ARRANGE_MOVED, .a = past ? 0 : by * N };
	case VN_ROWS_PARTS_FIRST: return (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = T, .b = N / inner, .each = inner };
	case VN_ROWS_IN_TURN: return (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = 2, .b = (T + 1) / 2, .each = N };
	case VN_ROWS_ROUND: return (vn_arrange) { VN_ARRANGE_ROUND, .a = by, .period = N };
	case VN_ROWS_APART: return (vn_arrange) { VN_ARRANGE_APART, .a = N, .b = by };
	case VN_ROWS_WRITTEN: return (vn_arrange) { VN_ARRANGE_PADDED, .a = N, .b = by - N };
	default: return (vn_arrange) { VN_ARRANGE_ROUND, .a = 0 };
	}
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

void REAL(vn_rows)(real *y, const real *const in[2], int64_t past, int64_t T, int64_t N, const vn_experiment *e,
                   int threads)
{
	const real      *x = in[0], *other = in[1];
	const vn_arrange m = arrangement_of(e, past, T, N);

	if (e->rows.form == VN_ROWS_LOG_SOFTMAX) {
#pragma omp parallel for num_threads(threads)
		for (int64_t t = 0; t < T; t++)
			log_softmax(y + t * N, x + t * N, N);
		return;
	}
	vn_arrange_bytes(y, x, &m, 1, (size_t)(T * N), sizeof *y);
	for (int64_t t = 0; e->rows.form == VN_ROWS_TILES && t < T; t++)
		if (in_other(e, t))
			memcpy(y + t * N, other + t * N, (size_t)N * sizeof *y);
}
