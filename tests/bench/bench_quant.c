/* bench_quant.c: how fast blocks of quantised weights become floats, on one core.
 *
 *   bench_quant          prints GB/s of float32 written, a line for each format, and for memcpy
 *
 * The output is a panel as libref/ops/linear.c has them, 8 MiB, written again and
 * again; the best of several rounds counts. */
#include "libref/base/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NUMBERS = 2 << 20, ROUNDS = 20 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void)
{
	float         *y = aligned_alloc(64, NUMBERS * sizeof *y);
	unsigned char *b = malloc(NUMBERS * sizeof *y);
	double         best[VN_N_WEIGHT_DTYPES + 1];

	if (!y || !b)
		return 2;
	for (size_t i = 0; i < NUMBERS * sizeof *y; i++)
		b[i] = (unsigned char)(i * 2654435761u >> 7 & 0x3f); /* no infinities, no NaN */
	memset(y, 0, NUMBERS * sizeof *y);
	for (int d = 0; d <= VN_N_WEIGHT_DTYPES; d++) {
		best[d] = 1e9;
		for (int r = 0; r < ROUNDS; r++) {
			const double start = now();
			if (d == VN_N_WEIGHT_DTYPES)
				memcpy(y, b, NUMBERS * sizeof *y);
			else
				vn_to_f32(y, b, (vn_dtype)d, NUMBERS);
			const double took = now() - start;
			best[d] = took < best[d] ? took : best[d];
		}
	}
	const double all = NUMBERS * sizeof *y, copy = best[VN_N_WEIGHT_DTYPES];
	printf("%-8s %6.2f GB/s of float32\n", "memcpy", all / copy / 1e9);
	for (int d = 0; d < VN_N_WEIGHT_DTYPES; d++)
		printf("%-8s %6.2f GB/s of float32, %.2f of memcpy\n", vn_dtype_word((vn_dtype)d), all / best[d] / 1e9,
		       copy / best[d]);
	free(y);
	free(b);
	return 0;
}
