/* dtype.c: see dtype.h: the formats, and the conversions of one number, which define the bits. */
#include "libref/base/dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <strings.h>

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

/* digits: stored significand bits; bias: of the exponent; top: code for numbers
 * that are too large. */
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
