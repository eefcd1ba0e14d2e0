// linear.glsl: operands of the shaders of a product x w^T + bias.
#if SUM_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define sum_t float16_t // every fma rounds
#else
#define sum_t float
#endif

#include "push.glsl"

PUSH_BLOCK {
	Real  x, w, b, y;
	uint  T, M, N, y_stride;
	uint  has_bias, width; // width: 8, 4 or 1; x, w and their rows start at multiples of it
	Float sums;            // of the shares of N
	uint  shares;
	uint  y_wide;          // 1: y and its rows start at multiples of 16 bytes
#if GATED
	Real  w_up, b_up, up, gated; // a second product of the same shape; the activated first times the second
	uint  up_has_bias, act;
#endif
} PUSHED;
