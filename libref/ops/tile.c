/* tile.c: chooses the loops for this processor. */
#include "libref/ops/tile.h"

const vn_tile_kernel *vn_tile_kernel_get(int i)
{
	const vn_tile_kernel *can[4] = { 0 };
	int                   n = 0;
#if defined(__x86_64__)
	__builtin_cpu_init();
	const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		can[n++] = &vn_tile_avx512;
	if (avx2)
		can[n++] = &vn_tile_avx2;
#endif
	can[n++] = &vn_tile_plain;
	return i < n ? can[i] : NULL;
}
