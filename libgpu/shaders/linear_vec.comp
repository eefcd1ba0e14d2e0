#version 460
// linear_vec: x w^T + bias for one token: a matrix times a vector.
//
//   y[m] = sum_n x[n] w[m,n] + b[m]
//
//   x (N) real in     w (M,N) real in     b (M) real in, or none     y (M) real out
//   push      vn_push_linear (T is 1)
//   dispatch  any x: a workgroup makes 4 outputs, in strides of the grid
//
// 16 lanes share an output: lane i sums the fours i, i+16, ... of a row, then
// the lanes fold in halves. sum_t is float; with SUM_F16 it is half and every
// fma and every fold rounds.
#extension GL_GOOGLE_include_directive : require
#if SUM_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "real.glsl"

#if SUM_F16
#define sum_t float16_t
#else
#define sum_t float
#endif

const uint OUTS = 4, LANES = 16;
layout(local_size_x = 64) in;
layout(push_constant) uniform Push {
	Real x, w, b, y;
	uint T, M, N, y_stride;
	uint has_bias, by_four;
} p;

shared sum_t part[OUTS * LANES];

void main()
{
	const uint id = gl_LocalInvocationID.x, lane = id % LANES;

	for (uint m0 = gl_WorkGroupID.x * OUTS; m0 < p.M; m0 += gl_NumWorkGroups.x * OUTS) {
		const uint m = m0 + id / LANES;
		sum_t acc = sum_t(0.0);
		if (m < p.M && p.by_four != 0) {
			for (uint f = lane; f < p.N / 4; f += LANES) {
				const vec4 x = vec4(Real4(p.x).v[f]), w = vec4(Real4(p.w).v[m * (p.N / 4) + f]);
				[[unroll]] for (uint i = 0; i < 4; i++)
					acc = fma(sum_t(x[i]), sum_t(w[i]), acc);
			}
		} else if (m < p.M) {
			for (uint f = lane * 4; f < p.N; f += LANES * 4)
				for (uint n = f; n < min(f + 4, p.N); n++)
					acc = fma(sum_t(p.x.v[n]), sum_t(p.w.v[m * p.N + n]), acc);
		}
		part[id] = acc;
		barrier();
		for (uint k = LANES / 2; k > 0; k /= 2) {
			if (lane < k)
				part[id] += part[id + k];
			barrier();
		}
		if (lane == 0 && m < p.M) {
			acc = part[id];
			if (p.has_bias != 0)
				acc += sum_t(p.b.v[m]);
			put(p.y, m, float(acc));
		}
		barrier(); // part is read above and written by the next four
	}
}
