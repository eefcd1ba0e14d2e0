#version 460
// join: columns of heads side by side.
//
//   y[r,:] = a[r,:], b[r / share,:]
//
//   a (R,A) real in     b (R / share,B) real in     y (R,A+B) real out
//   push      vn_push_join
//   dispatch  any x; one lane an element, in strides of the grid
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

layout(local_size_x = 64) in;
PUSH(vn_push_join);

void main()
{
	const uint width = p.A + p.B;

	for (uint e = gl_GlobalInvocationID.x; e < p.R * width; e += gl_NumWorkGroups.x * 64) {
		const uint r = e / width, d = e % width;
		if (d < p.A)
			p.y.v[e] = p.a.v[r * p.A + d];
		else
			p.y.v[e] = p.b.v[r / p.share * p.B + d - p.A];
	}
}
