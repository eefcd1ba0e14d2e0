/* dtype.c: see dtype.h. The portable conversions define the bits. Those with F16C instructions are
 * used if the processor has them, and must agree (tests/test_dtype.c compares all 65536 halves and
 * a million floats). */
#include "libref/base/dtype.h"

#include "libref/base/quant.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const struct {
	size_t      size, block;
	const char *name, *word;
	int         digits, min_exponent;
	double      max;
} info[VN_N_WEIGHT_DTYPES] = {
	/* size: of a block; min_exponent: of the smallest normal number, 2^min_exponent */
	[VN_F16] = { 2, 1, "f16", "F16", 10, -14, 65504.0 },
	[VN_BF16] = { 2, 1, "bf16", "BF16", 7, -126, 0x1.fep127 },
	[VN_F32] = { 4, 1, "f32", "F32", 23, -126, 0x1.fffffep127 },
	[VN_F64] = { 8, 1, "f64", "F64", 52, -1022, 0x1.fffffffffffffp1023 },
	[VN_F8_E4M3] = { 1, 1, "f8_e4m3", "F8_E4M3", 3, -6, 448.0 },
	[VN_F8_E5M2] = { 1, 1, "f8_e5m2", "F8_E5M2", 2, -14, 57344.0 },
	[VN_I32] = { 4, 1, "i32", "I32", 31, 31, INT32_MAX }, /* its ulp is 1 for every number */
	[VN_Q4_0] = { 18, 32, "q4_0", "Q4_0", 0, 0, 0 },
	[VN_Q4_1] = { 20, 32, "q4_1", "Q4_1", 0, 0, 0 },
	[VN_Q5_0] = { 22, 32, "q5_0", "Q5_0", 0, 0, 0 },
	[VN_Q5_1] = { 24, 32, "q5_1", "Q5_1", 0, 0, 0 },
	[VN_Q8_0] = { 34, 32, "q8_0", "Q8_0", 0, 0, 0 },
	[VN_Q4_K] = { 144, 256, "q4_k", "Q4_K", 0, 0, 0 },
	[VN_Q5_K] = { 176, 256, "q5_k", "Q5_K", 0, 0, 0 },
	[VN_Q6_K] = { 210, 256, "q6_k", "Q6_K", 0, 0, 0 },
};

size_t vn_dtype_size(vn_dtype d)
{
	assert(d < VN_N_DTYPES);
	return info[d].size;
}
size_t vn_dtype_block(vn_dtype d)
{
	return info[d].block;
}
const char *vn_dtype_name(vn_dtype d)
{
	return info[d].name;
}
const char *vn_dtype_word(vn_dtype d)
{
	return info[d].word;
}
int vn_dtype_digits(vn_dtype d)
{
	assert(d < VN_N_DTYPES);
	return info[d].digits;
}
double vn_dtype_max(vn_dtype d)
{
	assert(d < VN_N_DTYPES);
	return info[d].max;
}

size_t vn_dtype_bytes(vn_dtype d, size_t elements)
{
	assert(elements % info[d].block == 0);
	return elements / info[d].block * info[d].size;
}

int vn_dtype_from_name(const char *name, vn_dtype *d)
{
	for (int i = 0; i < VN_N_WEIGHT_DTYPES; i++)
		if (strcasecmp(name, info[i].name) == 0) {
			*d = (vn_dtype)i;
			return 1;
		}
	return 0;
}

double vn_dtype_ulp(vn_dtype d, double x)
{
	int e = 0;
	assert(d < VN_N_DTYPES);
	x = fabs(x);
	if (!(x > 0.0) || isinf(x))
		e = info[d].min_exponent;
	else
		frexp(x, &e), e -= 1;
	if (e < info[d].min_exponent)
		e = info[d].min_exponent;
	return ldexp(1.0, e - info[d].digits);
}

/* ---- one number ------------------------------------------------------------ */

static uint32_t bits_of(float x)
{
	uint32_t u;
	memcpy(&u, &x, 4);
	return u;
}
static float float_of(uint32_t u)
{
	float x;
	memcpy(&x, &u, 4);
	return x;
}

float vn_f16_to_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 0x3ffu;
	if (e == 31)
		return float_of(sign | 0x7f800000u | m << 13 | (m ? 0x400000u : 0)); /* quiet, as F16C does */
	if (e == 0) {
		float x = (float)m * 0x1p-24f; /* exact: m < 1024 */
		return float_of(sign | bits_of(x));
	}
	return float_of(sign | (e + 112u) << 23 | m << 13);
}

uint16_t vn_f32_to_f16(float x)
{
	uint32_t u = bits_of(x), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
	if (a > 0x7f800000u) /* NaN: keep the top of its payload, make it quiet */
		return (uint16_t)(sign | 0x7e00u | (a >> 13 & 0x3ffu));
	if (a >= 0x477ff000u) /* 65520 and more round to infinity */
		return (uint16_t)(sign | 0x7c00u);
	if (a < 0x38800000u) { /* below 2^-14: adding 0.5 lines the last bit up with 2^-24 */
		float y = float_of(a) + 0.5f;
		return (uint16_t)(sign | (bits_of(y) - 0x3f000000u));
	}
	a += 0xfffu + (a >> 13 & 1u); /* nearest, ties to even; the carry moves the exponent */
	return (uint16_t)(sign | ((a >> 13) - (112u << 10)));
}

float vn_bf16_to_f32(uint16_t h)
{
	return float_of((uint32_t)h << 16);
}

uint16_t vn_f32_to_bf16(float x)
{
	uint32_t u = bits_of(x);
	if ((u & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(u >> 16 | 0x40u);
	return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

float vn_f8_e4m3_to_f32(uint8_t c)
{
	const uint32_t sign = (uint32_t)(c & 0x80u) << 24, e = (c >> 3) & 15u, m = c & 7u;
	if ((c & 0x7fu) == 0x7f)
		return float_of(sign | 0x7fc00000u);
	return float_of(sign | (e ? (e + 120u) << 23 | m << 20 : bits_of((float)m * 0x1p-9f)));
}

float vn_f8_e5m2_to_f32(uint8_t c)
{
	return vn_f16_to_f32((uint16_t)(c << 8));
}

/* digits: stored significand bits; bias: of the exponent; top: code for numbers that are too large. */
static uint8_t to_f8(float x, uint32_t digits, uint32_t bias, uint32_t top)
{
	const uint32_t u = bits_of(x), sign = u >> 24 & 0x80u, shift = 23 - digits;
	uint32_t       a = u & 0x7fffffffu;
	if (a > 0x7f800000u)
		return (uint8_t)(sign | 0x7fu);
	if (a <
	    (128u - bias) << 23) { /* below the smallest normal: adding 2^(23 - bias + 1 - digits) lines the last bits up */
		const uint32_t magic = (127u + shift + 1 - bias) << 23;
		return (uint8_t)(sign | (bits_of(float_of(a) + float_of(magic)) - magic));
	}
	a = ((a + (1u << (shift - 1)) - 1 + (a >> shift & 1u)) >> shift) - ((127u - bias) << digits);
	return (uint8_t)(sign | (a < top ? a : top));
}

uint8_t vn_f32_to_f8_e4m3(float x)
{
	return to_f8(x, 3, 7, 0x7f);
}
uint8_t vn_f32_to_f8_e5m2(float x)
{
	return to_f8(x, 2, 15, 0x7c);
}

static int32_t f64_to_i32(double x)
{
	x = nearbyint(x);
	return x >= INT32_MAX ? INT32_MAX : x > INT32_MIN ? (int32_t)x : INT32_MIN; /* false for a NaN */
}

/* Rounds to odd: keeps the bits below a float visible to the next rounding, so that f64 to f16 in two steps
 * equals one rounding. */
static float f64_to_f32_odd(double x)
{
	float y = (float)x;
	if (isfinite(x) && (double)y != x) {
		uint32_t u = bits_of(y);
		if (isinf(y))
			return float_of((u & 0x80000000u) | 0x7f7fffffu);
		if (!(u & 1u)) /* y is even and inexact: step to the odd neighbour on x's side */
			u += (fabs((double)y) < fabs(x)) ? 1u : (u & 0x7fffffffu) ? ~0u : 1u;
		y = float_of(u);
	}
	return y;
}

/* ---- arrays ------------------------------------------------------------------ */

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
		vn_from_f32(d + i * info[to].size, to, part, m);
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
