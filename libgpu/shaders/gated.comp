#version 460
// gated: an activated gate times a value, element by element.
//
//   y[e] = f(gate[e]) * up[e]      f: map.glsl
//
//   a: gate (n) real in     b: up (n) real in     y (n) real out
//   push      vn_push_map
//   dispatch  any x; one lane an element, in strides of the grid
//
// One rounding: the activated gate stays in float.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "map.glsl"

void main()
{
	for (uint e = gl_GlobalInvocationID.x; e < p.n; e += gl_NumWorkGroups.x * 64)
		put(p.y, e, gated(float(p.a.v[e]), float(p.b.v[e])));
}
