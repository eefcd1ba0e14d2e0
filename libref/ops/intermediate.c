/* intermediate.c: see intermediate.h. */
#include "libref/ops/intermediate.h"

#include <math.h>

static double sigmoid(double u, int rounding)
{
	return vn_in_format(1.0 / vn_in_format(1.0 + vn_in_format(exp(-u), rounding), rounding), rounding);
}

/* u/2 (1 + x) */
static double half_of(double u, double x, int rounding)
{
	return vn_in_format(vn_in_format(0.5 * u, rounding) * vn_in_format(1.0 + vn_in_format(x, rounding), rounding),
	                    rounding);
}

double vn_act_rounded(double u, vn_act act, int rounding, bool squares)
{
	double cube, inside;

	switch (act) {
	case VN_SIGMOID: return sigmoid(u, rounding);
	case VN_SILU: return vn_in_format(u * sigmoid(u, rounding), rounding);
	case VN_QUICK_GELU: return vn_in_format(u * sigmoid(vn_in_format(1.702 * u, rounding), rounding), rounding);
	case VN_GELU: return half_of(u, erf(vn_in_format(u * 0.70710678118654752440, rounding)), rounding);
	case VN_GELU_TANH:
		cube = (squares ? vn_in_format(u * u, rounding) : u * u) * u;
		inside = vn_in_format(u + vn_in_format(0.044715 * vn_in_format(cube, rounding), rounding), rounding);
		return half_of(u, tanh(vn_in_format(0.79788456080286535588 * inside, rounding)), rounding);
	default: return u;
	}
}

bool vn_act_has_formula(vn_act act)
{
	return act == VN_SIGMOID || act == VN_SILU || act == VN_QUICK_GELU || act == VN_GELU || act == VN_GELU_TANH;
}
