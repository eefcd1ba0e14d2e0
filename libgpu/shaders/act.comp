#version 460
// act: an activation, element by element.
//
//   y[e] = f(x[e])      f: map.glsl
//
//   x (n) real in     y (n) real out
//   push      vn_push_map
//   dispatch  any x; a lane takes eight elements, or one, in strides of the grid
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "map.glsl"

vec4 activate4(vec4 x) { return vec4(activate(x.x), activate(x.y), activate(x.z), activate(x.w)); }

void one(uint e)   { put(p.y, e, activate(float(p.a.v[e]))); }
void eight(uint e) { put8(p.y, 8 * e, activate4(vec4(Real8(p.a).v[e].a)), activate4(vec4(Real8(p.a).v[e].b))); }

#include "map_main.glsl"
