#version 460
// gated: an activated gate times a value, element by element.
//
//   y[e] = f(gate[e]) * up[e]      f: map.glsl
//
//   a: gate (n) real in     b: up (n) real in     y (n) real out
//   push      vn_push_map
//   dispatch  any x; a lane takes eight elements, or one, in strides of the grid
//
// One rounding: the activated gate stays in float.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "map.glsl"

vec4 gated4(vec4 gate, vec4 up)
{
	return vec4(gated(gate.x, up.x), gated(gate.y, up.y), gated(gate.z, up.z), gated(gate.w, up.w));
}

void one(uint e)   { put(p.y, e, gated(float(p.a.v[e]), float(p.b.v[e]))); }
void eight(uint e)
{
	put8(p.y, 8 * e, gated4(vec4(Real8(p.a).v[e].a), vec4(Real8(p.b).v[e].a)),
	     gated4(vec4(Real8(p.a).v[e].b), vec4(Real8(p.b).v[e].b)));
}

#include "map_main.glsl"
