#version 460
// act: an activation, element by element.
//
//   y[e] = f(x[e])      f: map.glsl
//
//   x (n) real in     y (n) real out
//   push      vn_push_map
//   dispatch  any x; one lane an element, in strides of the grid
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "map.glsl"

void main()
{
	for (uint e = gl_GlobalInvocationID.x; e < p.n; e += gl_NumWorkGroups.x * 64)
		put(p.y, e, activate(float(p.a.v[e])));
}
