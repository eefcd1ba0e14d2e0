/* ggml.c: see ggml.h. */
#include "libref/ops/ggml.h"

#include <math.h>

enum { SMALL = 32, LARGE = 256 };

bool vn_ggml_rounds(vn_dtype weight)
{
	return weight != VN_F32 && weight != VN_F64;
}

bool vn_ggml_has_sums(vn_dtype weight)
{
	return weight == VN_Q4_1 || weight == VN_Q5_1;
}

static float round_to_half(float x)
{
	return vn_f16_to_f32(vn_f32_to_f16(x));
}

static void round_small_blocks(float *x, float *sums, vn_ggml_scale scale, int64_t N)
{
	for (int64_t i = 0; i < N; i += SMALL, x += SMALL) {
		float top = 0.0f, sum = 0.0f;
		for (int j = 0; j < SMALL; j++)
			top = fmaxf(top, fabsf(x[j]));
		const float d = top / 127.0f,
					id = top == 0.0f                ? 0.0f
		                 : scale == VN_GGML_DIVIDED ? 127.0f / top
		                                            : 1.0f / d,
					stored = round_to_half(d);
		for (int j = 0; j < SMALL; j++) {
			const float q = rintf(x[j] * id);
			sum += q;
			x[j] = stored * q;
		}
		if (sums)
			sums[i / SMALL] = round_to_half(d * sum) - stored * sum;
	}
}

static void round_large_blocks(float *x, int64_t N)
{
	for (int64_t i = 0; i < N; i += LARGE, x += LARGE) {
		float top = 0.0f, at = 0.0f;
		for (int j = 0; j < LARGE; j++)
			if (fabsf(x[j]) > top) {
				top = fabsf(x[j]);
				at = x[j];
			}
		const float id = top == 0.0f ? 0.0f : -127.0f / at, d = top == 0.0f ? 0.0f : 1.0f / id;
		for (int j = 0; j < LARGE; j++)
			x[j] = d * fminf(rintf(x[j] * id), 127.0f);
	}
}

void vn_ggml_gelu(float *y, const float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		const float h = round_to_half(x[i]), inside = 0.79788456080286535588f * h * (1.0f + 0.044715f * h * h);
		y[i] = x[i] <= -10.0f  ? 0.0f
		       : x[i] >= 10.0f ? x[i]
		                       : round_to_half(0.5f * h * (1.0f + (float)tanh((double)inside)));
	}
}

void vn_ggml_round(float *x, float *sums, vn_dtype weight, vn_ggml_scale scale, int64_t N)
{
	const int64_t block = (int64_t)vn_dtype_block(weight);

	if (block == 1 && vn_ggml_rounds(weight))
		vn_round_f32(x, weight, (size_t)N);
	else if (block == SMALL && N % SMALL == 0)
		round_small_blocks(x, sums, scale, N);
	else if (block == LARGE && N % LARGE == 0)
		round_large_blocks(x, N);
}
