#version 460
// layer_norm: norm by mean and variance, one workgroup per row.
//
//   y[r,n] = (offset + g[n]) * (x[r,n] - mean) / sqrt(mean_n((x[r,:] - mean)^2) + eps) + b[n]
//
//   x (R,N) real in     g (N) real in     b (N) real in, or none     y (R,N) real out
//   push      vn_push_norm
//   dispatch  any x; a workgroup takes rows in strides of the grid
//
// The mean is taken first: a mean of squares less the square of a mean would
// cancel. Lane i sums n = i, i+LANES, ...; the lanes then fold.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

const uint LANES = 128;
layout(local_size_x = 128) in;
PUSH(vn_push_norm);
#include "root.glsl"
#include "fold_halves.glsl"

void main()
{
	const uint lane = gl_LocalInvocationID.x;

	for (uint r = gl_WorkGroupID.x; r < p.R; r += gl_NumWorkGroups.x) {
		const uint row = r * p.N;
		float sum = 0.0, ss = 0.0;
		for (uint n = lane; n < p.N; n += LANES)
			sum += float(p.x.v[row + n]);
		const float mean = fold_sum(sum) / float(p.N);
		for (uint n = lane; n < p.N; n += LANES) {
			const float d = float(p.x.v[row + n]) - mean;
			ss += d * d;
		}
		const float root = root_of(fold_sum(ss), float(p.N));
		for (uint n = lane; n < p.N; n += LANES) {
			const float d = float(p.x.v[row + n]) - mean;
			put(p.y, row + n, (p.offset + float(p.g.v[n])) * (d / root) + (p.has_bias != 0 ? float(p.b.v[n]) : 0.0));
		}
	}
}
