/* roles.c: see roles.h. Built in both widths (real.h). */
#include "libref/ops/roles.h"

#include "libref/base/rounding.h"
#include "libref/ops/ggml.h"

#include <math.h>
#include <string.h>

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

/* Formats of single numbers: a matrix is rounded whenever it is read. */
static void round_alone(double *row, int64_t n, vn_role_format f)
{
	const double most = f == VN_ROLE_F8 ? vn_dtype_max(VN_F8_E4M3) : (double)INFINITY;
	float        part[PART];

	for (int64_t i = 0; f == VN_ROLE_TF32 && i < n; i++)
		row[i] = vn_round_to(row[i], VN_FORMAT_TF32);
	for (int64_t at = 0; f != VN_ROLE_TF32 && at < n; at += PART) {
		const int64_t m = n - at < PART ? n - at : PART;
		for (int64_t i = 0; i < m; i++) {
			const double x = row[at + i];
			part[i] = (float)(x > most ? most : x < -most ? -most : x);
		}
		vn_round_f32(part, f == VN_ROLE_F16 ? VN_F16 : f == VN_ROLE_BF16 ? VN_BF16 : VN_F8_E4M3, (size_t)m);
		for (int64_t i = 0; i < m; i++)
			row[at + i] = (double)part[i];
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

/* In float32, as engines do. levels: the largest number over the scale. */
static void round_inputs(double *row, int64_t n, float most, float levels)
{
	const float scale = most / levels;

	for (int64_t i = 0; i < n; i++) {
		const float whole = scale > 0 ? rintf((float)row[i] * (levels < 127.25f ? levels / most : 1 / scale)) : 0;
		row[i] = (double)(fmaxf(-128, fminf(127, whole)) * scale);
	}
}

static float largest_of(const double *row, int64_t n)
{
	double most = 0;
	for (int64_t i = 0; i < n; i++)
		most = fmax(most, fabs(row[i]));
	return (float)most;
}

/* In float32, as engines do. */
static void round_scaled(double *row, int64_t n, float most)
{
	const float scale = most / (float)vn_dtype_max(VN_F8_E4M3);

	if (!(scale > 0))
		return;
	for (int64_t i = 0; i < n; i++)
		row[i] = (double)((float)row[i] / scale);
	round_alone(row, n, VN_ROLE_F8);
	for (int64_t i = 0; i < n; i++)
		row[i] = (double)((float)row[i] * scale);
}

void vn_role_round(double *row, int64_t n, vn_role_format f)
{
	if (f == VN_ROLE_INT8_INPUTS || f == VN_ROLE_F8_SCALED)
		vn_role_round_by(row, n, f, (double)largest_of(row, n));
	for (int64_t i = 0; f == VN_ROLE_Q8_INPUTS && i < n; i += BLOCK) {
		const int64_t m = n - i < BLOCK ? n - i : BLOCK;
		round_inputs(row + i, m, largest_of(row + i, m), 127);
	}
	if (f == VN_ROLE_Q8_0_ROTATED)
		round_rotated(row, n);
	if (f == VN_ROLE_INT8)
		vn_in_format_scaled(row, n, VN_FORMAT_INT8);
	for (int64_t i = 0; f == VN_ROLE_Q8_0 && i < n; i += BLOCK)
		round_block(row + i, n - i < BLOCK ? n - i : BLOCK);
	if (f && !vn_role_has_scale(f))
		round_alone(row, n, f);
}

void vn_role_round_by(double *row, int64_t n, vn_role_format f, double most)
{
	if (f == VN_ROLE_F8_SCALED)
		round_scaled(row, n, (float)most);
	else
		round_inputs(row, n, (float)most, 127.5f);
}
#endif

/* Of numbers x that share a scale with `most` and were rounded to y, those halfway between two
 * become the other one. */
static void turn_ties(double *y, const double *x, int64_t n, double most)
{
	for (int64_t i = 0; i < n && most > 0; i++) {
		const double levels = fabs(x[i]) * 127 / most, low = floor(levels), whole = rint(fabs(y[i]) * 127 / most);
		if (fabs(levels - low - 0.5) < 0x1p-15)
			y[i] = whole > 0 ? y[i] * (2 * low + 1 - whole) / whole : copysign(most / 127, x[i]);
	}
}

/* One row, in parts: no memory is needed. step: from number to number. */
static void round_row(real *x, int64_t n, int64_t step, vn_role_format f, bool other_ties)
{
	double     part[PART], was[PART], most = 0;
	const bool whole = f == VN_ROLE_INT8 || f == VN_ROLE_INT8_INPUTS || f == VN_ROLE_F8_SCALED; /* shares a scale */

	for (int64_t i = 0; whole && i < n; i++) { /* with fmax, gcc 12 for aarch64 ends in an internal error */
		const double size = fabs((double)x[i * step]);
		most = size > most ? size : most;
	}
	for (int64_t at = 0; at < n; at += PART) {
		const int64_t m = n - at < PART ? n - at : PART;
		for (int64_t i = 0; i < m; i++)
			part[i] = (double)x[(at + i) * step];
		memcpy(was, part, (size_t)m * sizeof *was);
		if (f == VN_ROLE_INT8)
			vn_in_format_by(part, m, VN_FORMAT_INT8, most, 0);
		else if (whole)
			vn_role_round_by(part, m, f, most);
		else
			vn_role_round(part, m, f);
		for (int64_t i = 0; other_ties && i < m; i += whole ? m : BLOCK) {
			const int64_t n_alike = whole ? m : m - i < BLOCK ? m - i : BLOCK;
			turn_ties(part + i, was + i, n_alike, whole ? most : vn_largest(was + i, n_alike));
		}
		for (int64_t i = 0; i < m; i++)
			x[(at + i) * step] = (real)part[i];
	}
}

void REAL(vn_role_rows)(real *x, int64_t rows, int64_t n, vn_role_format f, bool other_ties, int threads)
{
	const bool    columns = f == VN_ROLE_INT8_CHANNEL;
	const int64_t all = columns ? n : rows;

#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t r = 0; r < all; r++)
		round_row(x + (columns ? r : r * n), columns ? rows : n, columns ? n : 1, columns ? VN_ROLE_INT8 : f,
		          other_ties);
}
