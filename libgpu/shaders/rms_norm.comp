#version 460
// rms_norm: root-mean-square norm, one workgroup per row.
//
//   y[r,n] = (offset + g[n]) * x[r,n] / sqrt(mean_n(x[r,:]^2) + eps)
//
//   x (R,N) real in     g (N) real in     y (R,N) real out
//   push      vn_push_rms_norm
//   dispatch  any x; a workgroup takes rows in strides of the grid
//
// Stored as real, computed in float: 256 squared already overflows half.
// Lane i sums n = i, i+LANES, ...; the lanes then fold in halves. The order
// depends on LANES alone, so a device repeats itself bit for bit.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

const uint LANES = 128;
layout(local_size_x = 128) in;
layout(push_constant) uniform Push {
	Real  x, g, y;
	uint  R, N;
	float eps, offset;
#if EXPERIMENT
	float divisor;
	uint  flags, G; // g is repeated
#endif
} p;
#include "root.glsl"

#if EXPERIMENT
uint weight(uint n) { return n % p.G; }
#else
uint weight(uint n) { return n; }
#endif

shared float part[LANES];

void main()
{
	const uint lane = gl_LocalInvocationID.x;

	for (uint r = gl_WorkGroupID.x; r < p.R; r += gl_NumWorkGroups.x) {
		const uint row = r * p.N;
		float ss = 0.0;
		for (uint n = lane; n < p.N; n += LANES) {
			const float x = float(p.x.v[row + n]);
			ss += x * x;
		}
		part[lane] = ss;
		barrier();
		for (uint k = LANES / 2; k > 0; k /= 2) {
			if (lane < k)
				part[lane] += part[lane + k];
			barrier();
		}
		const float root = root_of(part[0], float(p.N));
		for (uint n = lane; n < p.N; n += LANES) {
			const float x = float(p.x.v[row + n]) / root;
			put(p.y, row + n, (p.offset + float(p.g.v[weight(n)])) * normed(x));
		}
		barrier(); // part is read above and written by the next row
	}
}
