/* real.h: the two widths in which the reference computes.
 *
 * The kernels of libref/ops and exec/eval_real.c are built twice from the same source, with VN_REAL
 * 32 and 64: in double for the policy f64, and in float for all others, whose values are floats
 * that fit the storage format. A function REAL(vn_add) is named vn_add_f32 or vn_add_f64. The build
 * sets VN_REAL; files that are built once see the float names.
 */
#pragma once

#include "libref/base/dtype.h"

#ifndef VN_REAL
#define VN_REAL 32
#endif

#if VN_REAL == 64
typedef double real;
#define REAL(name)    name##_f64
#define VN_REAL_DTYPE VN_F64
#elif VN_REAL == 32
typedef float real;
#define REAL(name)    name##_f32
#define VN_REAL_DTYPE VN_F32
#else
#error "VN_REAL must be 32 or 64"
#endif

/* Loads a weight as reals, rounded to the policy's storage format. */
static inline void REAL(vn_load)(real *dst, const void *src, vn_dtype from, vn_dtype storage, size_t n)
{
#if VN_REAL == 64
	if (storage == VN_F64) {
		vn_to_f64(dst, src, from, n);
		return;
	}
	float part[256];
	for (size_t i = 0; i < n;) {
		const size_t m = n - i < 256 ? n - i : 256;
		vn_to_f32_as(part, (const char *)src + vn_dtype_bytes(from, i), from, storage, m);
		for (size_t j = 0; j < m; j++)
			dst[i + j] = (double)part[j];
		i += m;
	}
#else
	vn_to_f32_as(dst, src, from, storage, n);
#endif
}
