/* tile.c: chooses the loops for this processor. */
#include "libref/ops/tile.h"

#include "libref/base/simd.h"

const vn_tile_kernel *vn_tile_kernel_get(int i)
{
	const vn_tile_kernel *can[4] = { 0 };
	int                   n = 0;
#if defined(__x86_64__)
	const vn_simd have = vn_simd_here();
	if (have >= VN_SIMD_AVX512)
		can[n++] = &vn_tile_avx512;
	if (have >= VN_SIMD_AVX2)
		can[n++] = &vn_tile_avx2;
#endif
	can[n++] = &vn_tile_plain;
	return i < n ? can[i] : NULL;
}
