/* projection_help.h: numbers of layer1.q_proj of the llama, and of what it reads, for 12 tokens. */
#pragma once

#include "tests/support/explain_help.h"

#include <math.h>

enum { T = 12, N = 48 };

static float input[T * N], x[T * N], q[T * N], other[T * N];

/* q is the product, in double, of x and the llama's weight, and x the norm of the input. other: the
 * numbers of another tensor, which its operation did not make. */
static inline void fill(void)
{
	int64_t n_norm, n_row;
	double *norm = given_weight("layer1.attn_norm", 0, &n_norm), *row = given_weight("layer1.q_proj", 0, &n_row);

	CU_ASSERT_EQUAL_FATAL(n_norm, N);
	CU_ASSERT_EQUAL_FATAL(n_row, N * N);
	for (int i = 0; i < T * N; i++) {
		input[i] = (float)((37 * i + i / N) % 101) / 50 - 1;
		other[i] = (float)((41 * i + i / N) % 103) / 50 - 1;
	}
	for (int i = 0; i < T * N; i++) {
		double squares = 0;
		for (int n = 0; n < N; n++)
			squares += (double)input[i / N * N + n] * (double)input[i / N * N + n];
		x[i] = (float)((double)input[i] / sqrt(squares / N + 1e-5) * norm[i % N]);
	}
	for (int i = 0; i < T * N; i++) {
		double sum = 0;
		for (int n = 0; n < N; n++)
			sum += (double)x[i / N * N + n] * row[i % N * N + n];
		q[i] = (float)sum;
	}
	free(norm);
	free(row);
}
