// real.glsl: how a shader reads and writes the numbers of a run.
//
// STORE_F16 decides what is stored: 1 half, 0 float. Arithmetic is float in
// either case; a store is put(), which rounds once, to nearest. Everything is
// reached by device address, because a storage buffer may be limited to 128 MiB. Indices are 32
// bits and signed to some compilers: the host keeps one dispatch below 2^31
// elements of any operand. push.glsl is included after the types of operands.
#ifndef REAL_GLSL
#define REAL_GLSL

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : enable

#if STORE_F16
#extension GL_EXT_shader_16bit_storage : require
#define real  float16_t
#define real4 f16vec4
#define REAL_BYTES 2
#else
#define real  float
#define real4 vec4
#define REAL_BYTES 4
#endif

layout(buffer_reference, std430, buffer_reference_align = REAL_BYTES) buffer Real { real v[]; };
// The same memory four at a time: only where row length and start are multiples of four.
layout(buffer_reference, std430, buffer_reference_align = 4 * REAL_BYTES) buffer Real4 { real4 v[]; };
// Eight at a time, which is 16 bytes of halves.
struct EightReals { real4 a, b; };
layout(buffer_reference, std430, buffer_reference_align = 8 * REAL_BYTES) buffer Real8 { EightReals v[]; };
#if STORE_F16
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Float { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer Bits { uint16_t v[]; };
#define Raw Bits // the bits of a stored number
#else
#define Float Real // two equal types in one block of memory: the optimiser merges them and makes an invalid module
#define Raw   Int
#endif
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Int { int v[]; };

#include "push.glsl"

// x as a half, to nearest, ties to even, as vn_f32_to_f16. Computed with integers, because Vulkan
// does not define how float16_t(x) or packHalf2x16 round, whether they keep subnormals, or which
// NaN they give. It has a single return: the optimiser does not unroll a loop that calls a function
// with several.
uint half_bits(float x)
{
	const uint u = floatBitsToUint(x), sign = u >> 16 & 0x8000u, a = u & 0x7FFFFFFFu;
	uint h = sign;

	if (a >= 0x38800000u && a < 0x477FF000u) { // from 2^-14 to below 65520, the middle between 65504 and 2^16
		// a carry out of the digits moves the exponent, as it should
		h |= (a + 0xFFFu + (a >> 13 & 1u) - 0x38000000u) >> 13;
	} else if (a > 0x7F800000u) {
		h = 0x7E00u; // the plain NaN: a payload could be the guard's poison
	} else if (a >= 0x477FF000u) {
		h |= 0x7C00u;
	} else if (a > 0x33000000u) { // 2^-25, half of the smallest half, and everything below it become 0
		// Units of 2^-24: the digits stand for multiples of 2^(exponent - 150).
		const uint m = a & 0x7FFFFFu | 0x800000u, s = 126u - (a >> 23);
		h |= m + (1u << s - 1u) - 1u + (m >> s & 1u) >> s;
	}
	return h;
}


#if STORE_F16
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Words2 { uvec2 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Words4 { uvec4 v[]; };

uvec2 halves(vec4 x)
{
	return uvec2(half_bits(x.x) | half_bits(x.y) << 16, half_bits(x.z) | half_bits(x.w) << 16);
}

void put(Real y, uint at, float x)   { Bits(y).v[at] = uint16_t(half_bits(x)); }
void put4(Real y, uint at, vec4 x)   { Words2(y).v[at / 4] = halves(x); }
void put8(Real y, uint at, vec4 a, vec4 b) { Words4(y).v[at / 8] = uvec4(halves(a), halves(b)); }
#else
void put(Real y, uint at, float x)   { y.v[at] = x; }
void put4(Real y, uint at, vec4 x)   { Real4(y).v[at / 4] = x; }
void put8(Real y, uint at, vec4 a, vec4 b) { Real8(y).v[at / 8] = EightReals(a, b); }
#endif

// Not written as literals, so that a NaN stays a NaN, and an infinity an infinity.
#define INFINITY uintBitsToFloat(0x7F800000u)

// e^x to about 1e-7 relative. Vulkan promises (3 + 2|x|) ulp for exp, which
// is 40 ulp at x = -20: more than a float32 run may be off. ln 2 is split so
// that n * LN2_HI is exact; the polynomial is Taylor's to degree 7 on
// |r| <= ln(2)/2, remainder below 6e-9. A NaN passes through the arithmetic.
// Without branches: they cost more than what they would save.
float exp_(float x)
{
	const float n = floor(clamp(x, -87.33654, 88.72283) * 1.44269504 + 0.5);
	const float r = (x - n * 0.693359375) + n * 2.12194440e-4;
	float p = 1.0 / 5040.0;
	p = p * r + 1.0 / 720.0;
	p = p * r + 1.0 / 120.0;
	p = p * r + 1.0 / 24.0;
	p = p * r + 1.0 / 6.0;
	p = p * r + 0.5;
	p = p * r + 1.0;
	p = p * r + 1.0;
	// In two halves: 2^128 itself is no float.
	const int a = int(n) / 2, b = int(n) - a;
	const float y = p * intBitsToFloat((a + 127) << 23) * intBitsToFloat((b + 127) << 23);
	// Below the smallest normal: 0 on devices that flush, so 0 on all.
	return x > 88.72283 ? INFINITY : x < -87.33654 ? 0.0 : y;
}

float silu(float x)
{
	return x / (1.0 + exp_(-x));
}

// cap tanh(x / cap). Vulkan's tanh may be off by an exponential's error, or be NaN where that is
// infinite. Near 0, where 1 - 2 / (e^2u + 1) cancels, Taylor's to degree 9: remainder below 4e-9.
float soft_cap(float x, float cap)
{
	const float u = abs(x / cap), v = u * u;
	const float near = u * (1.0 + v * (-1.0 / 3.0 + v * (2.0 / 15.0 + v * (-17.0 / 315.0 + v * (62.0 / 2835.0)))));
	const float y = cap * (u < 0.25 ? near : 1.0 - 2.0 / (exp_(2.0 * u) + 1.0));
	return x < 0.0 ? -y : x == 0.0 ? x : y;
}

#endif
