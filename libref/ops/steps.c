/* steps.c: see steps.h. */
#include "libref/ops/steps.h"

#include <math.h>

static double sigmoid(double u, int steps)
{
	return vn_round_intermediate(1.0 / vn_round_intermediate(1.0 + vn_round_intermediate(exp(-u), steps), steps),
	                             steps);
}

/* u/2 (1 + x) */
static double half_of(double u, double x, int steps)
{
	return vn_round_intermediate(vn_round_intermediate(0.5 * u, steps) *
	                                 vn_round_intermediate(1.0 + vn_round_intermediate(x, steps), steps),
	                             steps);
}

double vn_act_by_steps(double u, vn_act act, int steps, bool squares)
{
	double cube, inside;

	switch (act) {
	case VN_SIGMOID: return sigmoid(u, steps);
	case VN_SILU: return vn_round_intermediate(u * sigmoid(u, steps), steps);
	case VN_QUICK_GELU:
		return vn_round_intermediate(u * sigmoid(vn_round_intermediate(1.702 * u, steps), steps), steps);
	case VN_GELU: return half_of(u, erf(vn_round_intermediate(u * 0.70710678118654752440, steps)), steps);
	case VN_GELU_TANH:
		cube = (squares ? vn_round_intermediate(u * u, steps) : u * u) * u;
		inside = vn_round_intermediate(u + vn_round_intermediate(0.044715 * vn_round_intermediate(cube, steps), steps),
		                               steps);
		return half_of(u, tanh(vn_round_intermediate(0.79788456080286535588 * inside, steps)), steps);
	default: return u;
	}
}

bool vn_act_has_steps(vn_act act)
{
	return act == VN_SIGMOID || act == VN_SILU || act == VN_QUICK_GELU || act == VN_GELU || act == VN_GELU_TANH;
}
