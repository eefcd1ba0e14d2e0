/* log_decay.c: how much a state forgets at a token. */
#include "libref/ops/ops.h"

#include <math.h>

/* HuggingFace's, which is u itself from 20 on: 2e-9 less than the logarithm there. */
static double softplus(double u)
{
	return u > 20.0 ? u : log1p(exp(u));
}

void REAL(vn_log_decay)(real *y, const real *x, const real *A_log, const real *dt_bias, int64_t T, int64_t N)
{
	for (int64_t n = 0; n < N; n++) {
		const double rate = -exp((double)A_log[n]);
		for (int64_t t = 0; t < T; t++)
			y[t * N + n] = (real)(rate * softplus((double)x[t * N + n] + (double)dt_bias[n]));
	}
}
