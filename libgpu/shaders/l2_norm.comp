#version 460
// l2_norm: rows of length one, one workgroup per row.
//
//   y[r,n] = x[r,n] / sqrt(sum_n(x[r,:]^2) + eps)
//
//   x (R,N) real in     y (R,N) float out
//   push      vn_push_norm; z, g and b are not read
//   dispatch  any x; a workgroup takes rows in strides of the grid
//
// Lane i sums n = i, i+LANES, ...; the lanes then fold.
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
		const float root = root_of(fold_sum(ss), 1.0);
		for (uint n = lane; n < p.N; n += LANES)
			Float(p.y).v[row + n] = float(p.x.v[row + n]) / root;
	}
}
