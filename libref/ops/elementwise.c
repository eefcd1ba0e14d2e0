/* elementwise.c: embedding rows, activations, sums. */
#include "libref/ops/ops.h"

#include <math.h>

void REAL(vn_embed)(real *y, const vn_tensor *w, const int32_t *ids, int64_t T, int64_t D, vn_policy policy)
{
	size_t row = (size_t)D * vn_dtype_size(w->dtype);
	for (int64_t t = 0; t < T; t++)
		REAL(vn_load)(y + t * D, (const char *)w->data + (size_t)ids[t] * row, w->dtype, policy.storage, (size_t)D);
}

static double activate(vn_act act, double x)
{
	switch (act) {
	case VN_SILU:
		return x / (1.0 + exp(-x));
	case VN_N_ACTS:
		break;
	}
	return (double)NAN;
}

void REAL(vn_act_apply)(real *y, const real *x, vn_act act, int64_t n, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t i = 0; i < n; i++)
		y[i] = (real)activate(act, (double)x[i]);
}

void REAL(vn_gated)(real *y, const real *gate, const real *up, vn_act act, int64_t n, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t i = 0; i < n; i++)
		y[i] = (real)(activate(act, (double)gate[i]) * (double)up[i]);
}

void REAL(vn_add)(real *y, const real *a, const real *b, int64_t n, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t i = 0; i < n; i++)
		y[i] = a[i] + b[i];
}
