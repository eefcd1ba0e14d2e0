#version 460
// slice: some columns of every row.
//
//   y[r,i] = x[r, from + i]
//
//   x (R,N) real in     y (R,width) real out
//   push      vn_push_slice
//   dispatch  any x; one lane an element, in strides of the grid
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

layout(local_size_x = 64) in;
PUSH(vn_push_slice);

void main()
{
	for (uint e = gl_GlobalInvocationID.x; e < p.R * p.width; e += gl_NumWorkGroups.x * 64)
		p.y.v[e] = p.x.v[e / p.width * p.N + p.from + e % p.width];
}
