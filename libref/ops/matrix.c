/* matrix.c: loads blocks of stored matrices. */
#include "libref/ops/ops.h"

/* Transposes a block of a matrix stored as (N,M), writing lines of 16 numbers so that no cache line
 * is written twice. */
static void transpose_block(real *dst, const vn_matrix *a, vn_matrix_part p, vn_policy policy)
{
	enum { LINES = 16, COLUMNS = 64 };
	const size_t size = vn_dtype_size(a->w->dtype);
	real         part[LINES * COLUMNS];

	for (int64_t n0 = 0; n0 < p.n; n0 += LINES)
		for (int64_t c0 = 0; c0 < p.m; c0 += COLUMNS) {
			const int64_t lines = p.n - n0 < LINES ? p.n - n0 : LINES,
						  columns = p.m - c0 < COLUMNS ? p.m - c0 : COLUMNS;
			for (int64_t l = 0; l < lines; l++) {
				const void *row = (const char *)a->w->data + (size_t)((p.n0 + n0 + l) * a->M + p.m0 + c0) * size;
				REAL(vn_load)(part + l * COLUMNS, row, a->w->dtype, policy.storage, (size_t)columns);
			}
			for (int64_t c = 0; c < columns; c++)
				for (int64_t l = 0; l < lines; l++)
					dst[(c0 + c) * p.n + n0 + l] = part[l * COLUMNS + c];
		}
}

void REAL(vn_matrix_block)(real *dst, const vn_matrix *a, vn_matrix_part p, vn_policy policy)
{
	const vn_dtype stored = a->w->dtype;

	if (a->transposed) {
		transpose_block(dst, a, p, policy);
		return;
	}
	for (int64_t j = 0; j < p.m; j++) {
		const size_t at = vn_dtype_bytes(stored, (size_t)((p.m0 + j) * a->N + p.n0));
		REAL(vn_load)(dst + j * p.n, (const char *)a->w->data + at, stored, policy.storage, (size_t)p.n);
	}
}
