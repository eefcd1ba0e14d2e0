#version 460
// append: copies the rows of a call to their place in a growing state.
//
//   to[e] = from[e]
//
//   from (n) real in     to (n) real out
//   push      vn_push_append
//   dispatch  any x; a lane takes eight elements, or one, in strides of the grid
//
// Bits are copied, not numbers. A copy command would cost more than this dispatch, because it needs
// another kind of barrier.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

#if STORE_F16
#define Raw8 Words4
#else
struct EightWords { uvec4 a, b; };
layout(buffer_reference, std430, buffer_reference_align = 32) buffer Raw8 { EightWords v[]; };
#endif

layout(local_size_x = 64) in;
PUSH(vn_push_append);

void one(uint e)   { p.to.v[e] = p.from.v[e]; }
void eight(uint e) { Raw8(p.to).v[e] = Raw8(p.from).v[e]; }

#include "map_main.glsl"
