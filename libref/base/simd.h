/* simd.h: the vector instructions of this processor. */
#ifndef VN_LIBREF_BASE_SIMD_H
#define VN_LIBREF_BASE_SIMD_H

typedef enum vn_simd {
	VN_SIMD_PLAIN,
	VN_SIMD_AVX2,  /* with FMA and F16C */
	VN_SIMD_AVX512 /* the same, with F, BW, DQ and VL */
} vn_simd;

/* Returns the best of these that the processor has. Any thread. */
vn_simd vn_simd_here(void);

#endif
