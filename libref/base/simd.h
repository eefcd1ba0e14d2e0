/* simd.h: the vector instructions of this processor. */
#pragma once

typedef enum vn_simd {
	VN_SIMD_PLAIN,
	VN_SIMD_AVX2,  /* with FMA and F16C */
	VN_SIMD_AVX512 /* the same, with F, BW, DQ and VL */
} vn_simd;

/* Returns the best of these that the processor has. Any thread. */
vn_simd vn_simd_here(void);
