// linear.glsl: operands of the shaders of a product x w^T + bias.
#if SUM_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define sum_t float16_t // every fma rounds
#else
#define sum_t float
#endif

PUSH(vn_push_linear);

#if EXPERTS
#include "experts.glsl"
#else
#define W             p.w
#define B             p.b
#define W_UP          p.w_up
#define B_UP          p.b_up
#define rows_end      p.T
#define x_row_of(row) (row)
#define y_row_of(row) (row)
#endif

#if GATED
#include "activation.glsl"

// Of two numbers as they are stored.
float gated(float gate, float up)
{
#if EXPERTS
	limit(gate, up);
#endif
	return activation(p.act, gate) * up;
}
#endif
