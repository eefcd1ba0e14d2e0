/* simd.c: see simd.h. */
#include "libref/base/simd.h"

#include <stdatomic.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Checks for half-precision conversions (F16C), a name that Clang 14's __builtin_cpu_supports
 * does not accept. */
static int has_f16c(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static vn_simd ask_processor(void)
{
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
		return VN_SIMD_PLAIN;
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
	           ? VN_SIMD_AVX512
	           : VN_SIMD_AVX2;
}
#else
static vn_simd ask_processor(void)
{
	return VN_SIMD_PLAIN;
}
#endif

static atomic_int kept = -1; /* CPUID takes thousands of cycles in a virtual machine */

vn_simd vn_simd_here(void)
{
	int have = kept;
	if (have < 0)
		kept = have = (int)ask_processor();
	return (vn_simd)have;
}
