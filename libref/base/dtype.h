/* dtype.h: the number formats of tensors, and conversions between them.
 *
 * Conversions round to nearest, ties to even, keep infinities and NaN, and give the same bits with
 * and without the processor's own instructions. All functions are pure and may run on any thread.
 *
 * The first VN_N_DTYPES are formats of single numbers: any tensor may have them, and our engines
 * read weights in the first VN_N_ENGINE_DTYPES. The rest are blocks of quantised weights that share
 * scales (quant.h): only weights have them; they can be read but not written, and only in whole
 * blocks.
 *
 * f8_e4m3 is the "fn" form of the OCP 8-bit specification: bias 7, no infinity, 0x7f and 0xff are
 * NaN; values beyond 464 become NaN (the specification's mode without saturation). f8_e5m2 is the
 * upper half of an f16. An i32 holds integers: other numbers are rounded, a number out of range
 * becomes the largest or smallest integer, and a NaN the smallest.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* clang-format off */
typedef enum vn_dtype {
	VN_F16, VN_BF16, VN_F32, VN_F64,
	VN_N_ENGINE_DTYPES,
	VN_F8_E4M3 = VN_N_ENGINE_DTYPES, VN_F8_E5M2, VN_I32,
	VN_N_DTYPES,
	VN_Q4_0 = VN_N_DTYPES, VN_Q4_1, VN_Q5_0, VN_Q5_1, VN_Q8_0, /* blocks of 32 */
	VN_Q4_K, VN_Q5_K, VN_Q6_K,                                 /* of 256 */
	VN_N_WEIGHT_DTYPES
} vn_dtype;
/* clang-format on */

size_t      vn_dtype_size(vn_dtype d);                         /* bytes per element; not for blocks */
size_t      vn_dtype_block(vn_dtype d);                        /* elements per block: 1, 32 or 256 */
size_t      vn_dtype_bytes(vn_dtype d, size_t elements);       /* of whole blocks */
const char *vn_dtype_name(vn_dtype d);                         /* "f16", "f8_e4m3", "i32", "q4_k" */
const char *vn_dtype_word(vn_dtype d);                         /* as files spell it: "F16", "F8_E4M3", "Q4_K" */
int         vn_dtype_from_name(const char *name, vn_dtype *d); /* upper or lower case; 0 when unknown */

/* For formats of single numbers. vn_dtype_digits: bits after the leading one, so that ulp(x) =
 * 2^(exponent - digits). Of two formats, the one with fewer digits is the coarser. An i32 has 31,
 * and an ulp of 1 everywhere. */
int                    vn_dtype_digits(vn_dtype d); /* 10, 7, 23, 52, 3, 2, 31 */
/* Returns the one with fewer digits; a if they have equally many. */
static inline vn_dtype vn_dtype_coarser(vn_dtype a, vn_dtype b)
{
	return vn_dtype_digits(b) < vn_dtype_digits(a) ? b : a;
}
double vn_dtype_max(vn_dtype d); /* largest finite value: 65504 for f16 */
/* Distance between the two neighbours of |x| in d; the smallest subnormal near 0. */
double vn_dtype_ulp(vn_dtype d, double x);

float    vn_f16_to_f32(uint16_t h);
uint16_t vn_f32_to_f16(float x);
float    vn_bf16_to_f32(uint16_t h);
uint16_t vn_f32_to_bf16(float x);
float    vn_f8_e4m3_to_f32(uint8_t c);
uint8_t  vn_f32_to_f8_e4m3(float x);
float    vn_f8_e5m2_to_f32(uint8_t c);
uint8_t  vn_f32_to_f8_e5m2(float x);

/* Convert arrays of n elements; blocks must be whole. src may be unaligned. src and dst must not
 * overlap. f64 is rounded once to a narrower format; i32 is rounded to f32 and exact in f64. */
void vn_to_f32(float *dst, const void *src, vn_dtype from, size_t n);
void vn_to_f64(double *dst, const void *src, vn_dtype from, size_t n);
void vn_from_f32(void *dst, vn_dtype to, const float *src, size_t n);
void vn_from_f64(void *dst, vn_dtype to, const double *src, size_t n);

/* Same as vn_to_f32, but first rounds to `as`, once, also from f64. */
void vn_to_f32_as(float *dst, const void *src, vn_dtype from, vn_dtype as, size_t n);

/* Rounds x in place to format `as`. */
void vn_round_f32(float *x, vn_dtype as, size_t n);
