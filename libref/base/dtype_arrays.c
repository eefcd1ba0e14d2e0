/* dtype_arrays.c: see dtype.h: the conversions of many numbers. F16C instructions are used if the
 * processor has them, and must agree with dtype.c (test_dtype.c compares all 65536 halves and a
 * million floats). */
#include "libref/base/dtype.h"

#include "libref/base/clones.h"
#include "libref/base/quant.h"
#include "libref/base/simd.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { PART = 256 }; /* numbers converted at a time, where it takes two steps */

/* Numbers at any address, in memory of any type. */
#define LOOSE __attribute__((aligned(1), may_alias))
typedef uint16_t loose_u16 LOOSE;
typedef int32_t loose_i32  LOOSE;
typedef uint32_t loose_u32 LOOSE;
typedef float loose_f32    LOOSE;
typedef double loose_f64   LOOSE;

static int32_t f64_to_i32(double x)
{
	x = nearbyint(x);
	return x >= INT32_MAX ? INT32_MAX : x > INT32_MIN ? (int32_t)x : INT32_MIN; /* false for a NaN */
}

/* Rounds to odd: keeps the bits below a float visible to the next rounding, so that f64 to f16 in
 * two steps equals one rounding. */
static float f64_to_f32_odd(double x)
{
	float y = (float)x;
	if (isfinite(x) && (double)y != x) {
		uint32_t u;
		if (isinf(y))
			return copysignf(FLT_MAX, y);
		memcpy(&u, &y, sizeof u);
		if (!(u & 1u)) /* y is even and inexact: step to the odd neighbour on x's side */
			u += (fabs((double)y) < fabs(x)) ? 1u : (u & 0x7fffffffu) ? ~0u : 1u;
		memcpy(&y, &u, sizeof y);
	}
	return y;
}

/* The next three convert numbers in whole vectors, from the first on, and return how many. */
#if defined(__x86_64__)
__attribute__((target("avx2,f16c"))) static size_t f16_to_f32_fast(float *dst, const loose_u16 *src, size_t n)
{
	size_t i = 0;
	for (; i + 8 <= n; i += 8)
		_mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(src + i))));
	return i;
}

__attribute__((target("avx2,f16c"))) static size_t f32_to_f16_fast(loose_u16 *dst, const float *src, size_t n)
{
	size_t i = 0;
	for (; i + 8 <= n; i += 8)
		_mm_storeu_si128((__m128i *)(void *)(dst + i),
		                 _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
	return i;
}

__attribute__((target("avx2,f16c"))) static size_t round_f16_fast(float *x, size_t n)
{
	size_t i = 0;
	for (; i + 8 <= n; i += 8)
		_mm256_storeu_ps(x + i, _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT)));
	return i;
}
#else
static size_t f16_to_f32_fast(float *d, const loose_u16 *s, size_t n)
{
	(void)d;
	(void)s;
	(void)n;
	return 0;
}
static size_t f32_to_f16_fast(loose_u16 *d, const float *s, size_t n)
{
	(void)d;
	(void)s;
	(void)n;
	return 0;
}
static size_t round_f16_fast(float *x, size_t n)
{
	(void)x;
	(void)n;
	return 0;
}
#endif

static bool has_f16c(void)
{
	return vn_simd_here() >= VN_SIMD_AVX2;
}

VN_CLONES
static void bf16_to_f32(loose_u32 *dst, const loose_u16 *src, size_t n)
{
	for (size_t i = 0; i < n; i++)
		dst[i] = (uint32_t)src[i] << 16;
}

/* vn_f32_to_bf16 without a branch, which compilers make vectors of. */
VN_CLONES
static void f32_to_bf16(loose_u16 *dst, const loose_u32 *src, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint32_t u = src[i], nan = u >> 16 | 0x40u, near = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
		dst[i] = (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : near);
	}
}

void vn_to_f32(float *dst, const void *src, vn_dtype from, size_t n)
{
	const loose_u16 *halves = src;
	const loose_f64 *doubles = src;
	const loose_i32 *integers = src;
	const uint8_t   *bytes = src;
	size_t           i = 0;

	switch (from) {
	case VN_F32:
		if (n)
			memcpy(dst, src, n * 4);
		break;
	case VN_F64:
		for (; i < n; i++)
			dst[i] = (float)doubles[i];
		break;
	case VN_F16:
		if (has_f16c())
			i = f16_to_f32_fast(dst, halves, n);
		for (; i < n; i++)
			dst[i] = vn_f16_to_f32(halves[i]);
		break;
	case VN_BF16: bf16_to_f32((loose_u32 *)dst, halves, n); break;
	case VN_F8_E4M3:
		for (; i < n; i++)
			dst[i] = vn_f8_e4m3_to_f32(bytes[i]);
		break;
	case VN_F8_E5M2:
		for (; i < n; i++)
			dst[i] = vn_f8_e5m2_to_f32(bytes[i]);
		break;
	case VN_I32:
		for (; i < n; i++)
			dst[i] = (float)integers[i];
		break;
	default: vn_dequantise(dst, src, from, n);
	}
}

void vn_to_f64(double *dst, const void *src, vn_dtype from, size_t n)
{
	const loose_f32 *floats = src;
	const loose_i32 *integers = src;
	float            part[PART];

	switch (from) {
	case VN_F64:
		if (n)
			memcpy(dst, src, n * 8);
		break;
	case VN_I32:
		for (size_t i = 0; i < n; i++)
			dst[i] = integers[i];
		break;
	case VN_F32:
		for (size_t i = 0; i < n; i++)
			dst[i] = (double)floats[i];
		break;
	default:
		for (size_t i = 0; i < n; i += PART) {
			const size_t m = n - i < PART ? n - i : PART; /* whole blocks, of either size */
			vn_to_f32(part, (const char *)src + vn_dtype_bytes(from, i), from, m);
			for (size_t j = 0; j < m; j++)
				dst[i + j] = (double)part[j];
		}
	}
}

void vn_from_f32(void *dst, vn_dtype to, const float *src, size_t n)
{
	loose_u16 *halves = dst;
	loose_f64 *doubles = dst;
	loose_i32 *integers = dst;
	uint8_t   *bytes = dst;
	size_t     i = 0;

	switch (to) {
	case VN_F32:
		if (n)
			memcpy(dst, src, n * 4);
		break;
	case VN_F64:
		for (; i < n; i++)
			doubles[i] = (double)src[i];
		break;
	case VN_F16:
		if (has_f16c())
			i = f32_to_f16_fast(halves, src, n);
		for (; i < n; i++)
			halves[i] = vn_f32_to_f16(src[i]);
		break;
	case VN_BF16: f32_to_bf16(halves, (const loose_u32 *)src, n); break;
	case VN_F8_E4M3:
		for (; i < n; i++)
			bytes[i] = vn_f32_to_f8_e4m3(src[i]);
		break;
	case VN_F8_E5M2:
		for (; i < n; i++)
			bytes[i] = vn_f32_to_f8_e5m2(src[i]);
		break;
	case VN_I32:
		for (; i < n; i++)
			integers[i] = f64_to_i32((double)src[i]);
		break;
	default: assert(0); /* block formats are never written */
	}
}

void vn_from_f64(void *dst, vn_dtype to, const double *src, size_t n)
{
	loose_i32 *integers = dst;
	float      part[PART];

	switch (to) {
	case VN_F64:
		if (n)
			memcpy(dst, src, n * 8);
		break;
	case VN_I32:
		for (size_t i = 0; i < n; i++)
			integers[i] = f64_to_i32(src[i]);
		break;
	default:
		for (size_t i = 0; i < n; i += PART) {
			const size_t m = n - i < PART ? n - i : PART;
			for (size_t j = 0; j < m; j++)
				part[j] = to == VN_F32 ? (float)src[i + j] : f64_to_f32_odd(src[i + j]);
			vn_from_f32((char *)dst + i * vn_dtype_size(to), to, part, m);
		}
	}
}

void vn_round_f32(float *x, vn_dtype as, size_t n)
{
	unsigned char part[PART * sizeof(float)];
	size_t        i = 0;

	if (as == VN_F32 || as == VN_F64)
		return;
	if (as == VN_F16 && has_f16c())
		i = round_f16_fast(x, n);
	for (; i < n; i += PART) {
		const size_t m = n - i < PART ? n - i : PART;
		vn_from_f32(part, as, x + i, m);
		vn_to_f32(x + i, part, as, m);
	}
}

void vn_to_f32_as(float *dst, const void *src, vn_dtype from, vn_dtype as, size_t n)
{
	double   wide[PART];
	uint32_t narrow[PART];

	if (from != VN_F64 || as == VN_F32 || as == VN_F64) {
		vn_to_f32(dst, src, from, n);
		if (from != as)
			vn_round_f32(dst, as, n);
		return;
	}
	for (size_t i = 0; i < n; i += PART) {
		const size_t m = n - i < PART ? n - i : PART;
		memcpy(wide, (const loose_f64 *)src + i, m * sizeof *wide);
		vn_from_f64(narrow, as, wide, m);
		vn_to_f32(dst + i, narrow, as, m);
	}
}
