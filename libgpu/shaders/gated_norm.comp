#version 460
// gated_norm: root-mean-square norm, then a gate; one workgroup per row.
//
//   y[r,n] = g[n] * x[r,n] / sqrt(mean_n(x[r,:]^2) + eps) * silu(z[r,n])
//
//   x, z (R,N) real in     g (N) real in     y (R,N) real out
//   push      vn_push_norm
//   dispatch  any x; a workgroup takes rows in strides of the grid
//
// One rounding. Lane i sums n = i, i+LANES, ...; the lanes then fold.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

const uint LANES = 64;
layout(local_size_x = 64) in;
PUSH(vn_push_norm);
#include "root.glsl"
#include "fold_halves.glsl"

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
		const float root = root_of(fold_sum(ss), float(p.N));
		for (uint n = lane; n < p.N; n += LANES)
			put(p.y, row + n, float(p.g.v[n]) * (float(p.x.v[row + n]) / root) * silu(float(p.z.v[row + n])));
	}
}
