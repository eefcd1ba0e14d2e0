/* dtype.h: the number formats a tensor may have, and the ways between them.
 *
 * Conversions round to nearest, ties to even, keep infinities and NaN, and
 * give the same bits with and without the processor's own instructions.
 * All are pure and may run on any thread.
 *
 * The first VN_N_DTYPES are numbers one by one: any tensor may have them, and
 * of those the first VN_N_ENGINE_DTYPES are what our engines read weights in.
 * The rest are blocks of weights that share scales (quant.h): only a weight has
 * them, they can be read and not written, and only whole blocks are read.
 *
 * f8_e4m3 is the "fn" form of the OCP 8-bit specification: bias 7, no infinity,
 * 0x7f and 0xff are NaN; what is beyond 464 becomes NaN (its mode without
 * saturation: a number that does not fit is none). f8_e5m2 is the upper half of
 * an f16. An i32 holds whole numbers: others are rounded,
 * those beyond either end become that end, and a NaN the lowest.
 */
#ifndef VN_LIBREF_BASE_DTYPE_H
#define VN_LIBREF_BASE_DTYPE_H

#include <stddef.h>
#include <stdint.h>

typedef enum vn_dtype {
	VN_F16, VN_BF16, VN_F32, VN_F64,
	VN_N_ENGINE_DTYPES,
	VN_F8_E4M3 = VN_N_ENGINE_DTYPES, VN_F8_E5M2, VN_I32,
	VN_N_DTYPES,
	VN_Q4_0 = VN_N_DTYPES, VN_Q4_1, VN_Q5_0, VN_Q5_1, VN_Q8_0, /* blocks of 32 */
	VN_Q4_K, VN_Q5_K, VN_Q6_K,                                 /* of 256 */
	VN_N_WEIGHT_DTYPES
} vn_dtype;

size_t      vn_dtype_size(vn_dtype d);                  /* bytes an element; not of blocks */
size_t      vn_dtype_block(vn_dtype d);                 /* elements a block: 1, 32 or 256 */
size_t      vn_dtype_bytes(vn_dtype d, size_t elements); /* of whole blocks */
const char *vn_dtype_name(vn_dtype d);                  /* "f16", "f8_e4m3", "i32", "q4_k" */
const char *vn_dtype_word(vn_dtype d);                  /* as files spell it: "F16", "F8_E4M3", "Q4_K" */
int         vn_dtype_from_name(const char *name, vn_dtype *d); /* upper or lower case; 0 when unknown */

/* Of the numbers that stand alone.
 * Bits behind the leading one: ulp(x) = 2^(exponent - digits). The format with fewer
 * is the coarser of two. An i32 has 31, and an ulp of 1 everywhere. */
int    vn_dtype_digits(vn_dtype d); /* 10, 7, 23, 52, 3, 2, 31 */
double vn_dtype_max(vn_dtype d);    /* largest finite value: 65504 for f16 */
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

/* Whole arrays of n elements, of which blocks must be whole. src need not be
 * aligned. src and dst must not overlap. From f64 to a narrower format the value
 * is rounded once; from i32 to f32 it is rounded, to f64 exact. */
void vn_to_f32(float *dst, const void *src, vn_dtype from, size_t n);
void vn_to_f64(double *dst, const void *src, vn_dtype from, size_t n);
void vn_from_f32(void *dst, vn_dtype to, const float *src, size_t n);
void vn_from_f64(void *dst, vn_dtype to, const double *src, size_t n);

/* As vn_to_f32, of what storing in `as` first would leave: rounded once, from f64 too. */
void vn_to_f32_as(float *dst, const void *src, vn_dtype from, vn_dtype as, size_t n);

/* In place: what storing in `as` and loading again would leave. */
void vn_round_f32(float *x, vn_dtype as, size_t n);

#endif
