/* log_decay.c: how much a state forgets at a token. */
#include "libref/ops/ops.h"

#include <math.h>

/* HuggingFace's softplus returns u itself from 20 on, 2e-9 less than the exact value there. */
static double softplus(double u)
{
	return u > 20.0 ? u : log1p(exp(u));
}

void REAL(vn_log_decay)(real *y, const real *x, real *const w[2], int64_t T, int64_t N, const vn_experiment *e)
{
	const int form = e ? e->decay.form : VN_DECAY_USUAL;

	for (int64_t n = 0; n < N; n++) {
		const double A = (double)w[0][n];
		const double rate = form == VN_DECAY_POSITIVE  ? exp(A)
		                    : form == VN_DECAY_RAW     ? A
		                    : form == VN_DECAY_NEGATED ? -A
		                                               : -exp(A);
		for (int64_t t = 0; t < T; t++) {
			const double u = (double)x[t * N + n] + (double)w[1][n];
			y[t * N + n] = (real)(rate * (form == VN_DECAY_LINEAR ? u : softplus(u)));
		}
	}
}
