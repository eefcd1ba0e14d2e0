/* intermediate.h: intermediate results of an operation, rounded as other implementations do.
 *
 * An implementation that writes an operation as several 16-bit tensor operations rounds after each
 * of them (vn_in_format). The reference computes it as one operation and rounds once.
 */
#pragma once

#include "libref/base/dtype.h"
#include "libref/base/rounding.h"
#include "libref/plan/plan.h"

static inline double vn_as_f16(double x)
{
	return (double)vn_f16_to_f32(vn_f32_to_f16((float)x));
}

/* Computes an activation by its formula, with every operation rounded:
 *   sigmoid     1 / (1 + exp(-u))
 *   silu        u sigmoid(u)
 *   quick_gelu  u sigmoid(1.702 u)
 *   gelu        u/2 (1 + erf(u / sqrt 2))
 *   gelu_tanh   u/2 (1 + tanh(sqrt(2/pi) (u + 0.044715 u^3)))
 * squares: u^2 is rounded before the cube. torch rounds it in vectors of bfloat16, but neither in
 * float16 nor in the last numbers that fill no vector. Returns u for any other activation. */
double vn_act_rounded(double u, vn_act act, int rounding, bool squares);
/* Is it one of these activations? */
bool   vn_act_has_formula(vn_act act);
