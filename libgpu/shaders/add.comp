#version 460
// add: y[e] = a[e] + b[e]
//
//   a, b (n) real in     y (n) real out
//   push      vn_push_map
//   dispatch  any x; a lane takes eight elements, or one, in strides of the grid
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "map.glsl"

void one(uint e)   { put(p.y, e, float(p.a.v[e]) + float(p.b.v[e])); }
void eight(uint e)
{
	put8(p.y, 8 * e, vec4(Real8(p.a).v[e].a) + vec4(Real8(p.b).v[e].a),
	     vec4(Real8(p.a).v[e].b) + vec4(Real8(p.b).v[e].b));
}

#include "map_main.glsl"
