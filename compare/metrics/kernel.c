/* kernel.c: see kernel.h. */
#include "compare/metrics/kernel.h"

#include "libref/base/simd.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const vn_metric_kernel *vn_metric_kernel_get(int i)
{
	const vn_metric_kernel *can[4] = { 0 };
	int                     n = 0;
#if defined(__x86_64__)
	const vn_simd have = vn_simd_here();
	if (have >= VN_SIMD_AVX512)
		can[n++] = &vn_metric_kernel_avx512;
	if (have >= VN_SIMD_AVX2)
		can[n++] = &vn_metric_kernel_avx2;
#endif
	can[n++] = &vn_metric_kernel_plain;
	return i < n ? can[i] : NULL;
}

static const vn_metric_kernel *_Atomic best; /* the fastest kernel, or the chosen one */

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

double vn_ulp_bucket_top(int bucket)
{
	if (bucket == 0)
		return 0.0;
	const int    step = bucket - 1 + 8; /* eighths from 2^0 */
	const double low = ldexp(8 + step % 8, step / 8 - 1 - 3), width = ldexp(1, step / 8 - 1 - 3);
	return width < 1.0 ? low : low + width - 1.0;
}
