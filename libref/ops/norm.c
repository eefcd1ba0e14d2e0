/* norm.c: norms. */
#include "libref/ops/ops.h"

#include "libref/base/clones.h"
#include "libref/ops/exp.h"

#include <math.h>

/* Sums in double: a float sum over N = 4096 drifts by up to 3e-6, which would be charged to the
 * engine under test. Four lanes, because a single chain of additions waits four cycles for each. */
VN_CLONES
static double sum_of_squares(const real *x, int64_t N)
{
	enum { LANES = 4 };
	const int64_t whole = N / LANES * LANES;
	double        ss[LANES] = { 0.0, 0.0, 0.0, 0.0 };

	for (int64_t n = 0; n < whole; n += LANES)
		for (int l = 0; l < LANES; l++)
			ss[l] += (double)x[n + l] * (double)x[n + l];
	for (int64_t n = whole; n < N; n++)
		ss[n - whole] += (double)x[n] * (double)x[n];
	return (ss[0] + ss[1]) + (ss[2] + ss[3]);
}

/* The divisor of a row. ss: its sum of squares; usual: the divisor of ss unless c gives another. */
static double compute_divisor(double ss, int64_t usual, const vn_norm *c, const vn_experiment *e)
{
	if (!e)
		return sqrt(ss / (double)usual + c->eps);
	const double sum = e->norm.sum_f16   ? (double)vn_f16_to_f32(vn_f32_to_f16((float)ss))
	                   : e->norm.sum_f32 ? (double)(float)ss
	                                     : ss;
	const int    s = e->norm.squares;
	const double mean = vn_in_format(sum / (double)(e->norm.divisor ? e->norm.divisor : usual), s);
	return e->norm.eps_outside ? sqrt(mean) + c->eps : sqrt(vn_in_format(mean + c->eps, s));
}

/* The factor of a row. */
static double compute_factor(double ss, int64_t usual, const vn_norm *c, const vn_experiment *e)
{
	return vn_in_format(1.0 / compute_divisor(ss, usual, c, e), e ? e->norm.inverse : VN_FORMAT_NONE);
}

static double sum_of_rounded_squares(const real *x, int64_t N, int format)
{
	double ss = 0.0;

	for (int64_t n = 0; n < N; n++)
		ss += vn_in_format((double)x[n] * (double)x[n], format);
	return ss;
}

VN_CLONES
static void scale_row(real *y, const real *x, const real *g, int64_t N, double scale, real offset)
{
	for (int64_t n = 0; n < N; n++)
		y[n] = (real)((double)x[n] * scale * (double)(offset + g[n]));
}

void REAL(vn_rms_norm)(real *y, const REAL(vn_normed) * a)
{
	const int64_t        N = a->N;
	const vn_experiment *e = a->e;

#pragma omp parallel for num_threads(a->threads) schedule(static)
	for (int64_t r = 0; r < a->R; r++) {
		const real  *xr = a->x + r * N; /* (N) */
		real        *yr = y + r * N;    /* (N) */
		const double ss = e && e->norm.squares ? sum_of_rounded_squares(xr, N, e->norm.squares) : sum_of_squares(xr, N),
					 scale = compute_factor(ss, N, a->c, e);
		const int first = !e ? VN_FORMAT_NONE : e->norm.first_f16 ? VN_FORMAT_F16 : e->norm.rounding;

		if (!first)
			scale_row(yr, xr, a->g, N, scale, (real)a->c->offset);
		for (int64_t n = 0; first && n < N; n++)
			yr[n] = (real)(vn_in_format((double)xr[n] * scale, first) * (double)((real)a->c->offset + a->g[n]));
	}
}

VN_CLONES
static void gated_row(real *y, const real *x, const real *z, const real *g, int64_t N, double scale)
{
	for (int64_t n = 0; n < N; n++)
		y[n] = (real)((double)x[n] * scale * (double)g[n] * ((double)z[n] / (1.0 + vn_exp(-(double)z[n]))));
}

/* Gates row r when the gate is not silu after the norm, or when intermediate results are rounded:
 * the activated gates go to y, and the normed input too. */
static void other_gated_row(real *y, const REAL(vn_normed) * a, int64_t r)
{
	const int64_t        N = a->N;
	const real          *x = a->x + r * N;
	const vn_experiment *e = a->e;

	REAL(vn_act_apply)(y, a->z + r * N, (vn_act)e->norm.gate, N, 1);
	if (e->norm.gate_first)
		for (int64_t n = 0; n < N; n++)
			y[n] *= x[n];
	const double scale = 1.0 / compute_divisor(sum_of_squares(e->norm.gate_first ? y : x, N), N, a->c, e);
	for (int64_t n = 0; n < N; n++) {
		const double normed = vn_in_format((e->norm.gate_first ? (double)y[n] : (double)x[n]) * scale,
		                                   e->norm.rounding);
		y[n] = (real)(vn_in_format(normed * (double)a->g[n], e->norm.rounding) *
		              (e->norm.gate_first ? 1.0 : (double)y[n]));
	}
}

void REAL(vn_gated_norm)(real *y, const REAL(vn_normed) * a)
{
	const vn_experiment *e = a->e;
	const int64_t        N = a->N;

#pragma omp parallel for num_threads(a->threads) schedule(static)
	for (int64_t r = 0; r < a->R; r++)
		if (e && (e->norm.gate != VN_SILU || e->norm.gate_first || e->norm.rounding))
			other_gated_row(y + r * N, a, r);
		else
			gated_row(y + r * N, a->x + r * N, a->z + r * N, a->g, N,
			          1.0 / compute_divisor(sum_of_squares(a->x + r * N, N), N, a->c, e));
}

/* The factor that scales a row to length one, rounded after every operation. */
static double factor_rounded(const real *x, int64_t N, const vn_norm *c, const vn_experiment *e)
{
	const int s = e->norm.rounding;
	double    ss = 0.0;

	for (int64_t n = 0; n < N; n++)
		ss += vn_in_format((double)x[n] * (double)x[n], s);
	ss = vn_in_format(ss, s) / (e->norm.divisor ? e->norm.divisor : 1);
	return vn_in_format(1.0 / (e->norm.eps_outside ? sqrt(ss) + c->eps : sqrt(vn_in_format(ss + c->eps, s))), s);
}

void REAL(vn_l2_norm)(real *y, const REAL(vn_normed) * a)
{
	const int64_t N = a->N;

#pragma omp parallel for num_threads(a->threads) schedule(static)
	for (int64_t r = 0; r < a->R; r++) {
		const real  *xr = a->x + r * N;
		const int    rounding = a->e ? a->e->norm.rounding : VN_FORMAT_NONE;
		const double scale = rounding ? factor_rounded(xr, N, a->c, a->e)
		                              : 1.0 / compute_divisor(sum_of_squares(xr, N), 1, a->c, a->e);

		for (int64_t n = 0; n < N; n++)
			y[r * N + n] = (real)vn_in_format((double)xr[n] * scale, rounding);
	}
}

void REAL(vn_layer_norm)(real *y, const REAL(vn_normed) * a)
{
	const int64_t        N = a->N;
	const vn_experiment *e = a->e;

#pragma omp parallel for num_threads(a->threads) schedule(static)
	for (int64_t r = 0; r < a->R; r++) {
		const real *xr = a->x + r * N; /* (N) */
		real       *yr = y + r * N;    /* (N) */

		/* Computes the mean first: a mean of squares minus the square of the mean cancels. */
		double sum[4] = { 0.0, 0.0, 0.0, 0.0 }, ss[4] = { 0.0, 0.0, 0.0, 0.0 };
		for (int64_t n = 0; n < N; n++)
			sum[n % 4] += (double)xr[n];
		const double mean = e && e->norm.keep_mean ? 0.0 : ((sum[0] + sum[1]) + (sum[2] + sum[3])) / (double)N;
		for (int64_t n = 0; n < N; n++)
			ss[n % 4] += ((double)xr[n] - mean) * ((double)xr[n] - mean);

		const double scale = compute_factor((ss[0] + ss[1]) + (ss[2] + ss[3]), N, a->c, e);
		for (int64_t n = 0; n < N; n++)
			yr[n] = (real)(((double)xr[n] - mean) * scale * (double)((real)a->c->offset + a->g[n]) +
			               (a->bias ? (double)a->bias[n] : 0.0));
	}
}
