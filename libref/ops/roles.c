/* roles.c: see roles.h. Built in both widths (real.h). */
#include "libref/ops/roles.h"

#include "libref/base/rounding.h"
#include "libref/ops/ggml.h"

#include <math.h>

enum { BLOCK = 32, PART = 32 * BLOCK, ROTATED = 64 };

#if VN_REAL == 32

static void round_block(double *x, int64_t n)
{
	float block[BLOCK] = { 0 };
	for (int64_t i = 0; i < n; i++)
		block[i] = (float)x[i];
	vn_ggml_round(block, NULL, VN_Q8_0, VN_GGML_DIVIDED, BLOCK);
	for (int64_t i = 0; i < n; i++)
		x[i] = (double)block[i];
}

static double round_alone(double x, vn_role_format f)
{
	const double most = vn_dtype_max(VN_F8_E4M3);

	switch (f) {
	case VN_ROLE_TF32: return vn_round_to(x, VN_FORMAT_TF32);
	case VN_ROLE_F16: return vn_round_to(x, VN_FORMAT_F16);
	case VN_ROLE_BF16: return vn_round_to(x, VN_FORMAT_BF16);
	case VN_ROLE_F8: return vn_round_to(isnan(x) ? x : fmax(-most, fmin(most, x)), VN_FORMAT_E4M3);
	default: return x;
	}
}

/* Multiplies n numbers, a power of two, by the Hadamard matrix of length one, its own inverse. */
static void rotate(double *x, int64_t n)
{
	const double by = 1 / sqrt((double)n);

	for (int64_t half = 1; half < n; half *= 2)
		for (int64_t i = 0; i < n; i++)
			if (!(i & half)) {
				const double a = x[i], b = x[i + half];
				x[i] = a + b;
				x[i + half] = a - b;
			}
	for (int64_t i = 0; i < n; i++)
		x[i] *= by;
}

static void round_rotated(double *row, int64_t n)
{
	const int64_t width = n & -n, step = width < ROTATED ? n : width;

	for (int64_t at = 0; at < n; at += step) {
		if (width >= ROTATED)
			rotate(row + at, step);
		vn_role_round(row + at, step, VN_ROLE_Q8_0);
		if (width >= ROTATED)
			rotate(row + at, step);
	}
}

void vn_role_round(double *row, int64_t n, vn_role_format f)
{
	if (f == VN_ROLE_Q8_0_ROTATED)
		round_rotated(row, n);
	if (f == VN_ROLE_INT8)
		vn_in_format_scaled(row, n, VN_FORMAT_INT8);
	for (int64_t i = 0; f == VN_ROLE_Q8_0 && i < n; i += BLOCK)
		round_block(row + i, n - i < BLOCK ? n - i : BLOCK);
	for (int64_t i = 0; f && !vn_role_has_scale(f) && i < n; i++)
		row[i] = round_alone(row[i], f);
}
#endif

/* One row, in parts: no memory is needed. */
static void round_row(real *x, int64_t n, vn_role_format f)
{
	double part[PART], most = 0;

	for (int64_t i = 0; f == VN_ROLE_INT8 && i < n; i++)
		most = fmax(most, fabs((double)x[i]));
	for (int64_t at = 0; at < n; at += PART) {
		const int64_t m = n - at < PART ? n - at : PART;
		for (int64_t i = 0; i < m; i++)
			part[i] = (double)x[at + i];
		if (f == VN_ROLE_INT8)
			vn_in_format_by(part, m, VN_FORMAT_INT8, most, 0);
		else
			vn_role_round(part, m, f);
		for (int64_t i = 0; i < m; i++)
			x[at + i] = (real)part[i];
	}
}

void REAL(vn_role_rows)(real *x, int64_t rows, int64_t n, vn_role_format f, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		round_row(x + r * n, n, f);
}
