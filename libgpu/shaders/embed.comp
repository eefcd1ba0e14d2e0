#version 460
// embed: rows of a table.
//
//   y[t,d] = w[ids[t], d]
//
//   w (V,D) real in     ids (T) int in     y (T,D) real out
//   push      vn_push_embed
//   dispatch  any x; one lane an element, in strides of the grid
//
// The row's address is computed in 64 bits, from two 32-bit words: V D may exceed
// 2^31, and a device need not have 64-bit integers.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference_uvec2 : require
#include "real.glsl"

layout(local_size_x = 64) in;
PUSH(vn_push_embed);

void main()
{
	for (uint e = gl_GlobalInvocationID.x; e < p.T * p.D; e += gl_NumWorkGroups.x * 64) {
		const uint t = e / p.D, d = e % p.D;
		uint lo, hi, carry;
		umulExtended(uint(p.ids.v[t]), p.D * REAL_BYTES, hi, lo);
		const uint sum = uaddCarry(lo, p.w.x, carry);
		p.y.v[e] = Real(uvec2(sum, p.w.y + hi + carry)).v[d];
	}
}
