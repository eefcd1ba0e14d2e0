/* intermediate.c: see intermediate.h. */
#include "libref/ops/intermediate.h"

#include <math.h>

static double sigmoid(double u, int rounding)
{
	return vn_round_intermediate(1.0 / vn_round_intermediate(1.0 + vn_round_intermediate(exp(-u), rounding), rounding),
	                             rounding);
}

/* u/2 (1 + x) */
static double half_of(double u, double x, int rounding)
{
	return vn_round_intermediate(vn_round_intermediate(0.5 * u, rounding) *
	                                 vn_round_intermediate(1.0 + vn_round_intermediate(x, rounding), rounding),
	                             rounding);
}

double vn_act_rounded(double u, vn_act act, int rounding, bool squares)
{
	double cube, inside;

	switch (act) {
	case VN_SIGMOID: return sigmoid(u, rounding);
	case VN_SILU: return vn_round_intermediate(u * sigmoid(u, rounding), rounding);
	case VN_QUICK_GELU:
		return vn_round_intermediate(u * sigmoid(vn_round_intermediate(1.702 * u, rounding), rounding), rounding);
	case VN_GELU: return half_of(u, erf(vn_round_intermediate(u * 0.70710678118654752440, rounding)), rounding);
	case VN_GELU_TANH:
		cube = (squares ? vn_round_intermediate(u * u, rounding) : u * u) * u;
		inside = vn_round_intermediate(
			u + vn_round_intermediate(0.044715 * vn_round_intermediate(cube, rounding), rounding), rounding);
		return half_of(u, tanh(vn_round_intermediate(0.79788456080286535588 * inside, rounding)), rounding);
	default: return u;
	}
}

bool vn_act_has_formula(vn_act act)
{
	return act == VN_SIGMOID || act == VN_SILU || act == VN_QUICK_GELU || act == VN_GELU || act == VN_GELU_TANH;
}
