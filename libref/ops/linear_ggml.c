/* linear_ggml.c: rounds the inputs of a product as ggml does (ggml.h), and adds the effect of its
 * rounded block sums. */
#include "libref/ops/ops.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 32 }; /* numbers that share a minimum, in formats that store minima */

bool REAL(vn_ggml_input)(const vn_operands *f, vn_dtype kept, vn_ggml_scale scale, real **out, float **sums)
{
	const vn_matrix *w = f->w;
	const real      *x = f->x;
	const int64_t    N = w->N, T = f->T;
	/* The minima are read from the weight, so it must still be in the stored format. */
	const bool       summed = vn_ggml_has_sums(kept) && w->w->dtype == kept && !w->transposed && N % BLOCK == 0;
	bool             good = true;

	*out = malloc((size_t)(T * N) * sizeof **out + 1);
	*sums = summed ? malloc((size_t)(T * (N / BLOCK)) * sizeof **sums + 1) : NULL;
	if (!*out || (summed && !*sums))
		return false;
#pragma omp parallel num_threads(f->threads) reduction(&& : good)
	{
		float *row = malloc((size_t)N * sizeof *row + 1);
		good = row;
#pragma omp for schedule(static)
		for (int64_t t = 0; t < T; t++) {
			if (!row)
				continue;
			for (int64_t n = 0; n < N; n++)
				row[n] = (float)x[t * N + n];
			vn_ggml_round(row, summed ? *sums + t * (N / BLOCK) : NULL, kept, scale, N);
			for (int64_t n = 0; n < N; n++)
				(*out)[t * N + n] = (real)row[n];
		}
		free(row);
	}
	return good;
}

/* f16 scale; f16 minimum; the rest */
static float minimum_at(const vn_matrix *w, int64_t m, int64_t b)
{
	uint16_t half;
	memcpy(&half, (const char *)w->w->data + vn_dtype_bytes(w->w->dtype, (size_t)(m * w->N + b * BLOCK)) + 2, 2);
	return vn_f16_to_f32(half);
}

void REAL(vn_ggml_add_sums)(real *y, const float *sums, const vn_matrix *w, int64_t T, int threads)
{
	const int64_t blocks = w->N / BLOCK;

#pragma omp parallel for schedule(static) num_threads(threads)
	for (int64_t m = 0; m < w->M; m++)
		for (int64_t t = 0; t < T; t++) {
			double sum = 0.0;
			for (int64_t b = 0; b < blocks; b++)
				sum += (double)minimum_at(w, m, b) * (double)sums[t * blocks + b];
			y[t * w->M + m] += (real)sum;
		}
}
