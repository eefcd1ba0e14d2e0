/* matrix.c: loads blocks of stored matrices. */
#include "libref/ops/ops.h"

/* Transposes a block of a matrix stored as (N,M), writing lines of 16 numbers so that no cache line
 * is written twice. */
static void transpose_block(real *dst, const vn_matrix *a, int64_t m0, int64_t m, int64_t from, int64_t n,
                            vn_policy policy)
{
	enum { LINES = 16, COLUMNS = 64 };
	const size_t size = vn_dtype_size(a->w->dtype);
	real         part[LINES * COLUMNS];

	for (int64_t n0 = 0; n0 < n; n0 += LINES)
		for (int64_t c0 = 0; c0 < m; c0 += COLUMNS) {
			const int64_t lines = n - n0 < LINES ? n - n0 : LINES, columns = m - c0 < COLUMNS ? m - c0 : COLUMNS;
			for (int64_t l = 0; l < lines; l++) {
				const void *row = (const char *)a->w->data + (size_t)((from + n0 + l) * a->M + m0 + c0) * size;
				REAL(vn_load)(part + l * COLUMNS, row, a->w->dtype, policy.storage, (size_t)columns);
			}
			for (int64_t c = 0; c < columns; c++)
				for (int64_t l = 0; l < lines; l++)
					dst[(c0 + c) * n + n0 + l] = part[l * COLUMNS + c];
		}
}

void REAL(vn_matrix_block)(real *dst, const vn_matrix *a, int64_t m0, int64_t m, int64_t n0, int64_t n,
                           vn_policy policy)
{
	if (a->transposed)
		transpose_block(dst, a, m0, m, n0, n, policy);
	else
		for (int64_t j = 0; j < m; j++)
			REAL(vn_load)
	(dst + j * n, (const char *)a->w->data + vn_dtype_bytes(a->w->dtype, (size_t)((m0 + j) * a->N + n0)), a->w->dtype,
	 policy.storage, (size_t)n);
}
