/* dtype_arrays.c: see dtype.h: the conversions of many numbers. F16C instructions are used if the
 * processor has them, and must agree with dtype.c (tests/test_dtype.c compares all 65536 halves and
 * a million floats). */
#include "libref/base/dtype.h"

#include "libref/base/quant.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

#if defined(__x86_64__)
static int has_f16c(void)
{
	static _Atomic int known = -1; /* a race writes the same value twice */
	if (known < 0)
		known = __builtin_cpu_supports("avx2"); /* every processor with AVX2 has F16C */
	return known;
}

__attribute__((target("avx2,f16c"))) static size_t f16_to_f32_fast(float *dst, const unsigned char *src, size_t n)
{
	size_t i = 0;
	for (; i + 8 <= n; i += 8)
		_mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(src + 2 * i))));
	return i;
}

__attribute__((target("avx2,f16c"))) static size_t f32_to_f16_fast(unsigned char *dst, const float *src, size_t n)
{
	size_t i = 0;
	for (; i + 8 <= n; i += 8)
		_mm_storeu_si128((__m128i *)(void *)(dst + 2 * i),
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

__attribute__((target("avx2"))) static size_t bf16_to_f32_fast(float *dst, const unsigned char *src, size_t n)
{
	size_t i = 0;
	for (; i + 8 <= n; i += 8) {
		__m256i w = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(src + 2 * i)));
		_mm256_storeu_ps(dst + i, _mm256_castsi256_ps(_mm256_slli_epi32(w, 16)));
	}
	return i;
}
#else
static int has_f16c(void)
{
	return 0;
}
static size_t f16_to_f32_fast(float *d, const unsigned char *s, size_t n)
{
	(void)d;
	(void)s;
	(void)n;
	return 0;
}
static size_t f32_to_f16_fast(unsigned char *d, const float *s, size_t n)
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
static size_t bf16_to_f32_fast(float *d, const unsigned char *s, size_t n)
{
	(void)d;
	(void)s;
	(void)n;
	return 0;
}
#endif

void vn_to_f32(float *dst, const void *src, vn_dtype from, size_t n)
{
	const unsigned char *s = src;
	size_t               i = 0;
	switch (from) {
	case VN_F32:
		if (n)
			memcpy(dst, s, n * 4);
		break;
	case VN_F64:
		for (; i < n; i++) {
			double x;
			memcpy(&x, s + 8 * i, 8);
			dst[i] = (float)x;
		}
		break;
	case VN_F16:
		if (has_f16c())
			i = f16_to_f32_fast(dst, s, n);
		for (; i < n; i++) {
			uint16_t h;
			memcpy(&h, s + 2 * i, 2);
			dst[i] = vn_f16_to_f32(h);
		}
		break;
	case VN_BF16:
		if (has_f16c())
			i = bf16_to_f32_fast(dst, s, n);
		for (; i < n; i++) {
			uint16_t h;
			memcpy(&h, s + 2 * i, 2);
			dst[i] = vn_bf16_to_f32(h);
		}
		break;
	case VN_F8_E4M3:
		for (; i < n; i++)
			dst[i] = vn_f8_e4m3_to_f32(s[i]);
		break;
	case VN_F8_E5M2:
		for (; i < n; i++)
			dst[i] = vn_f8_e5m2_to_f32(s[i]);
		break;
	case VN_I32:
		for (; i < n; i++) {
			int32_t x;
			memcpy(&x, s + 4 * i, 4);
			dst[i] = (float)x;
		}
		break;
	default: vn_dequantise(dst, src, from, n);
	}
}

void vn_to_f64(double *dst, const void *src, vn_dtype from, size_t n)
{
	const unsigned char *s = src;
	if (from == VN_F64) {
		if (n)
			memcpy(dst, s, n * 8);
		return;
	}
	if (from == VN_I32) {
		for (size_t i = 0; i < n; i++) {
			int32_t x;
			memcpy(&x, s + 4 * i, 4);
			dst[i] = x;
		}
		return;
	}
	if (from == VN_F32) {
		for (size_t i = 0; i < n; i++) {
			float x;
			memcpy(&x, s + 4 * i, 4);
			dst[i] = (double)x;
		}
		return;
	}
	float part[256];
	for (size_t i = 0; i < n;) {
		size_t m = n - i < 256 ? n - i : 256; /* whole blocks, of either size */
		vn_to_f32(part, s + vn_dtype_bytes(from, i), from, m);
		for (size_t j = 0; j < m; j++)
			dst[i + j] = (double)part[j];
		i += m;
	}
}

void vn_from_f32(void *dst, vn_dtype to, const float *src, size_t n)
{
	unsigned char *d = dst;
	size_t         i = 0;
	switch (to) {
	case VN_F32:
		if (n)
			memcpy(d, src, n * 4);
		break;
	case VN_F64:
		for (; i < n; i++) {
			double x = (double)src[i];
			memcpy(d + 8 * i, &x, 8);
		}
		break;
	case VN_F16:
		if (has_f16c())
			i = f32_to_f16_fast(d, src, n);
		for (; i < n; i++) {
			uint16_t h = vn_f32_to_f16(src[i]);
			memcpy(d + 2 * i, &h, 2);
		}
		break;
	case VN_BF16:
		for (; i < n; i++) {
			uint16_t h = vn_f32_to_bf16(src[i]);
			memcpy(d + 2 * i, &h, 2);
		}
		break;
	case VN_F8_E4M3:
		for (; i < n; i++)
			d[i] = vn_f32_to_f8_e4m3(src[i]);
		break;
	case VN_F8_E5M2:
		for (; i < n; i++)
			d[i] = vn_f32_to_f8_e5m2(src[i]);
		break;
	case VN_I32:
		for (; i < n; i++) {
			const int32_t x = f64_to_i32((double)src[i]);
			memcpy(d + 4 * i, &x, 4);
		}
		break;
	default: assert(0); /* block formats are never written */
	}
}

void vn_from_f64(void *dst, vn_dtype to, const double *src, size_t n)
{
	unsigned char *d = dst;
	if (to == VN_F64) {
		if (n)
			memcpy(d, src, n * 8);
		return;
	}
	if (to == VN_I32) {
		for (size_t i = 0; i < n; i++) {
			const int32_t x = f64_to_i32(src[i]);
			memcpy(d + 4 * i, &x, 4);
		}
		return;
	}
	float part[256];
	for (size_t i = 0; i < n;) {
		size_t m = n - i < 256 ? n - i : 256;
		for (size_t j = 0; j < m; j++)
			part[j] = to == VN_F32 ? (float)src[i + j] : f64_to_f32_odd(src[i + j]);
		vn_from_f32(d + i * vn_dtype_size(to), to, part, m);
		i += m;
	}
}

void vn_round_f32(float *x, vn_dtype as, size_t n)
{
	unsigned char part[256 * 4];
	size_t        i = 0;
	if (as == VN_F32 || as == VN_F64)
		return;
	if (as == VN_F16 && has_f16c())
		i = round_f16_fast(x, n);
	while (i < n) {
		const size_t m = n - i < 256 ? n - i : 256;
		vn_from_f32(part, as, x + i, m);
		vn_to_f32(x + i, part, as, m);
		i += m;
	}
}

void vn_to_f32_as(float *dst, const void *src, vn_dtype from, vn_dtype as, size_t n)
{
	const unsigned char *s = src;
	double               wide[256];
	uint32_t             narrow[256];

	if (from != VN_F64 || as == VN_F32 || as == VN_F64) {
		vn_to_f32(dst, src, from, n);
		if (from != as)
			vn_round_f32(dst, as, n);
		return;
	}
	for (size_t i = 0; i < n;) {
		size_t m = n - i < 256 ? n - i : 256;
		memcpy(wide, s + 8 * i, m * 8);
		vn_from_f64(narrow, as, wide, m);
		vn_to_f32(dst + i, narrow, as, m);
		i += m;
	}
}
