#version 460
// rms_norm: root-mean-square norm, one workgroup per row.
//
//   y[r,n] = (offset + g[n]) * x[r,n] / sqrt(mean_n(x[r,:]^2) + eps)
//
//   x (R,N) real in     g (N) real in     y (R,N) real out
//   push      vn_push_norm
//   dispatch  any x; a workgroup takes rows in strides of the grid
//
// Stored as real, computed in float: 256 squared overflows half. Lane i
// sums n = i, i+LANES, ..., or eights of them where N is a multiple of 8.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

const uint LANES = 128;
layout(local_size_x = 128) in;
PUSH(vn_push_norm);
#include "root.glsl"
#include "fold.glsl"
#include "squares.glsl"

bool by_eight()     { return p.N % 8 == 0; } // all rows start at eight numbers then

void scale(uint row, float root)
{
	const uint lane = gl_LocalInvocationID.x;

	if (by_eight())
		for (uint n = lane; n < p.N / 8; n += LANES) {
			const vec4 a = vec4(Real8(p.x).v[row / 8 + n].a) / root, b = vec4(Real8(p.x).v[row / 8 + n].b) / root;
			put8(p.y, row + 8 * n, (p.offset + vec4(Real8(p.g).v[n].a)) * a, (p.offset + vec4(Real8(p.g).v[n].b)) * b);
		}
	else
		for (uint n = lane; n < p.N; n += LANES) {
			const float x = float(p.x.v[row + n]) / root;
			put(p.y, row + n, (p.offset + float(p.g.v[n])) * x);
		}
}

void main()
{
	for (uint r = gl_WorkGroupID.x; r < p.R; r += gl_NumWorkGroups.x)
		scale(r * p.N, root_of(fold_sum(squares(r * p.N, p.N, by_eight())), float(p.N)));
}
