/* elementwise.c: rows of tables, activations, sums, columns. */
#include "libref/ops/ops.h"

#include "libref/base/clones.h"
#include "libref/ops/exp.h"
#include "libref/ops/intermediate.h"

#include <math.h>
#include <string.h>

void REAL(vn_embed)(real *y, const vn_tensor *w, const int32_t *ids, int64_t T, int64_t D, vn_policy policy)
{
	size_t row = vn_dtype_bytes(w->dtype, (size_t)D);
	for (int64_t t = 0; t < T; t++)
		REAL(vn_load)(y + t * D, (const char *)w->data + (size_t)ids[t] * row, w->dtype, policy.storage, (size_t)D);
}

void REAL(vn_positions)(real *y, const vn_tensor *w, int64_t past, int64_t T, int64_t D, vn_policy policy)
{
	size_t row = vn_dtype_bytes(w->dtype, (size_t)D);
	for (int64_t t = 0; t < T; t++)
		REAL(vn_load)(y + t * D, (const char *)w->data + (size_t)(past + t) * row, w->dtype, policy.storage, (size_t)D);
}

void REAL(vn_slice)(real *y, const real *x, int64_t R, int64_t N, int64_t from, int64_t width)
{
	for (int64_t r = 0; r < R; r++)
		memcpy(y + r * width, x + r * N + from, (size_t)width * sizeof *y);
}

/* Elements of one share of an activation, which is multiplied by `up` if given. */
enum { SHARE = 8192 };

/* Rounds to a format, for experiments. */
static double round_to_format(double u, vn_act as)
{
	const float    x = (float)u;
	const uint16_t h = vn_f32_to_f16(x);
	const double   y = (double)vn_f16_to_f32(h);
	uint32_t       bits;
	float          cut;

	switch (as) {
	case VN_AS_F16_SATURATED: return isinf(y) ? copysign(65504.0, y) : y;
	case VN_AS_F16_FLUSHED: return fabs(y) < 0x1p-14 ? copysign(0.0, y) : y;
	case VN_AS_F16_CUT: /* one ulp back, if it was rounded away from 0 */
		return !isinf(x) && fabs(y) > fabs((double)x) ? (double)vn_f16_to_f32((uint16_t)(h - 1)) : y;
	case VN_AS_BF16_CUT:
		memcpy(&bits, &x, sizeof bits);
		bits &= 0xFFFF0000u;
		memcpy(&cut, &bits, sizeof cut);
		return isnan(x) ? (double)x : (double)cut;
	default: return y;
	}
}

static double softplus(double u)
{
	return u > 30 ? u : log1p(exp(u));
}

/* The activations of experiments, which need no speed. */
static double of_experiment(double u, vn_act act)
{
	switch (act) {
	case VN_TANH: return tanh(u);
	case VN_SOFTPLUS: return softplus(u);
	case VN_MISH: return u * tanh(softplus(u));
	case VN_ELU: return u > 0 ? u : expm1(u);
	case VN_SELU: return 1.0507009873554805 * (u > 0 ? u : 1.6732632423543772 * expm1(u));
	case VN_LEAKY_RELU: return u > 0 ? u : 0.01 * u;
	case VN_RELU6: return fmin(fmax(u, 0), 6);
	case VN_SQUARED_RELU: return u > 0 ? u * u : 0;
	case VN_HARD_SIGMOID: return fmin(fmax(u / 6 + 0.5, 0), 1);
	case VN_HARD_SWISH: return u * fmin(fmax(u / 6 + 0.5, 0), 1);
	case VN_SOFTSIGN: return u / (1 + fabs(u));
	case VN_EXP: return exp(u);
	default: return u;
	}
}

/* y = f(u), with u the number as a double. There are two loops so that the one without `up`
 * is vectorised too. */
#define EACH(f) \
	do { \
		if (up) \
			for (int64_t i = 0; i < n; i++) { \
				const double u = (double)x[i]; \
				y[i] = (real)((f) * (double)up[i]); \
			} \
		else \
			for (int64_t i = 0; i < n; i++) { \
				const double u = (double)x[i]; \
				y[i] = (real)(f); \
			} \
	} while (0)

VN_CLONES
static void compute_share(real *y, const real *x, const real *up, vn_act act, int64_t n)
{
	switch (act) {
	case VN_SILU:
		EACH (u / (1.0 + vn_exp(-u)))
			;
		break;
	case VN_GELU: /* 1 + erf cancels for negative u, erfc does not */
		EACH (0.5 * u * erfc(-u * 0.70710678118654752440))
			;
		break;
	case VN_GELU_TANH: /* (1 + tanh a) / 2 = 1 / (1 + exp(-2a)); 2 sqrt(2/pi) */
		EACH (u / (1.0 + vn_exp(-1.59576912160573071176 * (u + 0.044715 * u * u * u))))
			;
		break;
	case VN_SIGMOID:
		EACH (1.0 / (1.0 + vn_exp(-u)))
			;
		break;
	case VN_RELU: /* a NaN stays one */
		EACH (u < 0.0 ? 0.0 : u)
			;
		break;
	case VN_QUICK_GELU:
		EACH (u / (1.0 + vn_exp(-1.702 * u)))
			;
		break;
	case VN_IDENTITY:
		EACH (u)
			;
		break;
	case VN_TWO_SIGMOID:
		EACH (2.0 / (1.0 + vn_exp(-u)))
			;
		break;
	case VN_SOFT_CAP:
		EACH (30.0 * tanh(u / 30.0))
			;
		break;
	case VN_AS_F16:
	case VN_AS_F16_SATURATED:
	case VN_AS_F16_FLUSHED:
	case VN_AS_F16_CUT:
	case VN_AS_BF16_CUT:
		EACH (round_to_format(u, act))
			;
		break;
	default:
		EACH (of_experiment(u, act))
			;
		break;
	}
}

void REAL(vn_act_apply)(real *y, const real *x, vn_act act, int64_t n, int threads)
{
	REAL(vn_gated)(y, (const real *[]) { x, NULL }, &(vn_consts) { .act.act = act }, NULL, n, threads);
}

static double value_rounded(double u, vn_act act, const vn_experiment *e)
{
	const real x = (real)u;
	real       y;

	if (e->act.formula && vn_act_has_formula(act))
		return vn_act_rounded(u, act, e->act.rounding, e->act.formula == 2);
	compute_share(&y, &x, NULL, act, 1);
	return vn_in_format((double)y, e->act.rounding);
}

/* Element by element, with the intermediate rounding of other implementations. */
static void share_rounded(real *y, const real *gate, const real *up, vn_act act, const vn_experiment *e, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		const double g = (double)gate[i], u = up ? (double)up[i] : 1.0;
		if (e->act.form == VN_GATE_PRODUCT)
			y[i] = (real)value_rounded(vn_in_format(g * u, e->act.rounding), act, e);
		else
			y[i] = (real)(value_rounded(g, act, e) * (e->act.form == VN_GATE_BOTH ? value_rounded(u, act, e) : u));
	}
}

/* In these variants intermediate results are rounded to real. */
static void share_of(real *y, const real *gate, const real *up, const vn_consts *c, const vn_experiment *e, int64_t n)
{
	if (!e || (!e->act.rounding && e->act.form == VN_GATE_USUAL)) {
		compute_share(y, gate, up, c->act.act, n);
	} else if (e->act.rounding) {
		share_rounded(y, gate, up, c->act.act, e, n);
	} else if (e->act.form == VN_GATE_BOTH) {
		compute_share(y, up, NULL, c->act.act, n);
		compute_share(y, gate, y, c->act.act, n);
	} else {
		for (int64_t i = 0; i < n; i++)
			y[i] = gate[i] * up[i];
		compute_share(y, y, NULL, c->act.act, n);
	}
}

void REAL(vn_gated)(real *y, const real *const in[2], const vn_consts *c, const vn_experiment *e, int64_t n,
                    int threads)
{
#pragma omp parallel for num_threads(threads) schedule(dynamic)
	for (int64_t i = 0; i < n; i += SHARE)
		share_of(y + i, in[0] + i, in[1] ? in[1] + i : NULL, c, e, n - i < SHARE ? n - i : SHARE);
}

void REAL(vn_add)(real *y, const real *a, const real *b, int64_t n, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t i = 0; i < n; i++)
		y[i] = a[i] + b[i];
}
