#version 460
// from_bf16: converts bfloat16 to half in place, to nearest, ties to even, as vn_f32_to_f16 does.
//
//   x (n) in place     over (groups) out: how many finite ones became infinite
//   push      vn_push_from_bf16
//   dispatch  x: groups; a lane takes eight elements, or one, in strides of the grid
//
// It computes bits, not numbers: a device may flush subnormals and change the payload of a NaN.
// Each workgroup has a count of its own, because an atomic sum would need the device scope of the
// Vulkan memory model (coop.h).
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

const uint LANES = 128;
layout(local_size_x = LANES) in;
PUSH(vn_push_from_bf16);

shared uint counted[LANES];

uint over = 0;

// Three digits more than bfloat16 has: only what is subnormal as a half is rounded.
uint half_of(uint b)
{
	const uint sign = b & 0x8000u, a = b & 0x7FFFu, e = a >> 7, digits = a & 0x7Fu | 0x80u;
	uint h;

	if (a > 0x7F80u) {
		h = 0x7E00u | a << 3 & 0x3FFu;
	} else if (a >= 0x4780u) { // 2^16
		h = 0x7C00u;
		over += a < 0x7F80u ? 1 : 0;
	} else if (a >= 0x3880u) { // 2^-14
		h = (a << 3) - (112u << 10);
	} else if (e >= 110u) { // multiples of 2^-24
		h = digits << e - 110u;
	} else {
		const uint s = min(110u - e, 9u); // at most half of 2^-24 is left of what is shifted by 9: nothing
		h = digits + (1u << s - 1u) - 1u + (digits >> s & 1u) >> s;
	}
	return sign | h;
}

uint two(uint b) { return half_of(b & 0xFFFFu) | half_of(b >> 16) << 16; }

void main()
{
	const uint stride = gl_NumWorkGroups.x * LANES, lane = gl_LocalInvocationID.x;

	for (uint i = gl_GlobalInvocationID.x; i < p.eights; i += stride) {
		const uvec4 w = Words4(p.x).v[i];
		Words4(p.x).v[i] = uvec4(two(w.x), two(w.y), two(w.z), two(w.w));
	}
	for (uint i = gl_GlobalInvocationID.x; i < p.rest; i += stride) {
		const uint at = p.eights * 8 + i;
		p.x.v[at] = uint16_t(half_of(uint(p.x.v[at])));
	}
	counted[lane] = over;
	barrier();
	if (lane == 0) {
		for (uint i = 1; i < LANES; i++)
			over += counted[i];
		p.over.v[gl_WorkGroupID.x] = int(over);
	}
}
