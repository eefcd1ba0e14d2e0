/* kernel.c: see kernel.h. */
#include "compare/metrics/kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>

/* Checks for half-precision conversions (F16C), a name that Clang 14's __builtin_cpu_supports does not accept. */
static int has_f16c(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

const vn_metric_kernel *vn_metric_kernel_get(int i)
{
	const vn_metric_kernel *can[4] = { 0 };
	int                     n = 0;
#if defined(__x86_64__)
	__builtin_cpu_init();
	const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
	if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		can[n++] = &vn_kernel_avx512;
	if (avx2)
		can[n++] = &vn_kernel_avx2;
#endif
	can[n++] = &vn_kernel_plain;
	return i < n ? can[i] : NULL;
}

static const vn_metric_kernel *_Atomic best; /* cached, because CPUID takes thousands of cycles in a virtual machine */

const vn_metric_kernel *vn_metric_kernel_best(void)
{
	const vn_metric_kernel *k = best;
	if (!k)
		best = k = vn_metric_kernel_get(0);
	return k;
}

vn_status vn_metric_kernel_choose(const char *name, vn_error *err)
{
	char                    have[64] = "";
	const vn_metric_kernel *k;
	for (int i = 0; (k = vn_metric_kernel_get(i)); i++) {
		if (strcmp(k->name, name) == 0) {
			best = k;
			return VN_OK;
		}
		snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", i ? ", " : "", k->name);
	}
	return vn_fail(err, VN_ERR_UNSUPPORTED, "no kernel '%.20s'; this processor has %s", name, have);
}

/* Buckets follow the first four bits of a float32. 1015 is one less than the bits of 1.0f shifted right by 20,
 * so distance 1 is bucket 1. */
int vn_ulp_bucket(uint64_t distance)
{
	const float x = (float)distance;
	int32_t     bits;
	memcpy(&bits, &x, sizeof bits);
	return (bits >> 20) < 1015 ? 0 : (bits >> 20) - 1015;
}

double vn_ulp_bucket_top(int bucket)
{
	if (bucket == 0)
		return 0.0;
	const int    step = bucket - 1 + 8; /* eighths from 2^0 */
	const double low = ldexp(8 + step % 8, step / 8 - 1 - 3), width = ldexp(1, step / 8 - 1 - 3);
	return width < 1.0 ? low : low + width - 1.0;
}
