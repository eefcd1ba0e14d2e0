// coop.glsl: cooperative matrices: products of small matrices that a subgroup holds together.
//
//   MAT_A  MM x MK, halves     MAT_B  MK x MN, halves     MAT_C  MM x MN, floats
//   MULADD(a, b, c)            a b + c, summed in float
//   LOAD_ROWS, LOAD_COLS       from an array of any type, the stride in its elements, at 16 bytes
//
//   pack_halves(x)             two numbers as halves, rounded to nearest, ties to even;
//                              HARD_HALVES: by the device
//
// Written in the extension that glslc knows; the build converts it to Vulkan's
// (tools/nv2khr.c), which needs the use of each matrix. The dimensions state it: N is written
// N + 1024, K is K + 2048.
#ifndef COOP_GLSL
#define COOP_GLSL

#extension GL_NV_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_control_flow_attributes : require

#ifndef MM // a size that the device lists, and how many lanes hold one matrix
#define MM 16
#define MN 16
#define MK 16
#define SUBGROUP 32
#endif

#define MAT_A fcoopmatNV<16, gl_ScopeSubgroup, MM, (MK + 2048)>
#define MAT_B fcoopmatNV<16, gl_ScopeSubgroup, (MK + 2048), (MN + 1024)>
#define MAT_C fcoopmatNV<32, gl_ScopeSubgroup, MM, (MN + 1024)>
#define LOAD_ROWS(m, a, at, stride)  coopMatLoadNV(m, a, at, stride, false)
#define LOAD_COLS(m, a, at, stride)  coopMatLoadNV(m, a, at, stride, true)
#define STORE_ROWS(m, a, at, stride) coopMatStoreNV(m, a, at, stride, false)
#define MULADD(a, b, c)              coopMatMulAddNV(a, b, c)

// A device that promises this rounding has an instruction for it; half_bits takes twenty, which in
// a tile cost as much as the product of 896 inputs. A NaN becomes the plain one, as in half_bits.
#if HARD_HALVES
uint pack_halves(vec2 x)
{
	uint two = packFloat2x16(f16vec2(x));

	if ((floatBitsToUint(x.x + x.y) & 0x7FFFFFFFu) > 0x7F800000u)
		two = half_bits(x.x) | half_bits(x.y) << 16;
	return two;
}
#else
uint pack_halves(vec2 x) { return half_bits(x.x) | half_bits(x.y) << 16; }
#endif

#endif
