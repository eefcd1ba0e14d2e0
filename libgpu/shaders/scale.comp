#version 460
// scale: multiplies by a constant, with a soft cap or without, element by element.
//
//   y[e] = scale x[e]      or, if cap is not 0, cap tanh(scale x[e] / cap)
//
//   x (n) real in     y (n) real out
//   push      vn_push_scale
//   dispatch  any x; one lane an element, in strides of the grid
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

layout(local_size_x = 64) in;
PUSH(vn_push_scale);

void main()
{
	for (uint e = gl_GlobalInvocationID.x; e < p.n; e += gl_NumWorkGroups.x * 64) {
		const float s = p.scale * float(p.x.v[e]);
		put(p.y, e, p.cap != 0.0 ? soft_cap(s, p.cap) : s);
	}
}
