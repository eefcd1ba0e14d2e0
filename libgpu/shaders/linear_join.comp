#version 460
// linear_join: adds the partial sums of a product whose inputs were divided into shares,
// in order, and the bias.
//
//   y[t,m] = sum_z sums[z,t,m] + b[m]
//
//   sums (shares,T,M') float in, M' = M rounded up to 8     b (M) real in, or none
//   y (T,M) real out, with WIDE float, rows y_stride apart
//   push      vn_push_linear
//   dispatch  any x; a lane takes a column of a token, in strides of the grid
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "linear.glsl"

layout(local_size_x = 128) in;

void main()
{
	const uint row = (p.M + 7) / 8 * 8, n = p.T * row;

	for (uint e = gl_GlobalInvocationID.x; e < n; e += gl_NumWorkGroups.x * 128) {
		const uint t = e / row, m = e % row;
		if (m >= p.M)
			continue;
		float sum = p.sums.v[e];
		for (uint z = 1; z < p.shares; z++)
			sum += p.sums.v[z * n + e];
		if (p.has_bias != 0)
			sum += float(p.b.v[m]);
#if WIDE
		Float(p.y).v[t * p.y_stride + m] = sum;
#else
		put(p.y, t * p.y_stride + m, sum);
#endif
	}
}
