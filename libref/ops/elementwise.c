/* elementwise.c: embedding rows, activations, sums. */
#include "libref/ops/ops.h"

#include "libref/base/clones.h"
#include "libref/ops/exp.h"

void REAL(vn_embed)(real *y, const vn_tensor *w, const int32_t *ids, int64_t T, int64_t D, vn_policy policy)
{
	size_t row = vn_dtype_bytes(w->dtype, (size_t)D);
	for (int64_t t = 0; t < T; t++)
		REAL(vn_load)(y + t * D, (const char *)w->data + (size_t)ids[t] * row, w->dtype, policy.storage, (size_t)D);
}

/* A thread's share of an activation, times `up` when there is one. */
enum { SHARE = 8192 };

VN_CLONES
static void share(real *y, const real *x, const real *up, vn_act act, int64_t n)
{
	switch (act) {
	case VN_SILU:
		if (up)
			for (int64_t i = 0; i < n; i++)
				y[i] = (real)((double)x[i] / (1.0 + vn_exp(-(double)x[i])) * (double)up[i]);
		else
			for (int64_t i = 0; i < n; i++)
				y[i] = (real)((double)x[i] / (1.0 + vn_exp(-(double)x[i])));
		break;
	case VN_N_ACTS:
		break;
	}
}

void REAL(vn_act_apply)(real *y, const real *x, vn_act act, int64_t n, int threads)
{
	REAL(vn_gated)(y, x, NULL, act, n, threads);
}

void REAL(vn_gated)(real *y, const real *gate, const real *up, vn_act act, int64_t n, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(dynamic)
	for (int64_t i = 0; i < n; i += SHARE)
		share(y + i, gate + i, up ? up + i : NULL, act, n - i < SHARE ? n - i : SHARE);
}

void REAL(vn_add)(real *y, const real *a, const real *b, int64_t n, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t i = 0; i < n; i++)
		y[i] = a[i] + b[i];
}
