#version 460
// add: y[e] = a[e] + b[e]
//
//   a, b (n) real in     y (n) real out
//   push      vn_push_map
//   dispatch  any x; one lane an element, in strides of the grid
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "map.glsl"

void main()
{
	for (uint e = gl_GlobalInvocationID.x; e < p.n; e += gl_NumWorkGroups.x * 64)
		put(p.y, e, float(p.a.v[e]) + float(p.b.v[e]));
}
