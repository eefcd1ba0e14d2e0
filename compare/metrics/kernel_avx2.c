/* kernel_avx2.c: the loops of kernel_body.inc for AVX2 with FMA and F16C. */
#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define KERNEL_AVX2
#define KERNEL      vn_metric_kernel_avx2
#define KERNEL_NAME "avx2"
#include "compare/metrics/kernel_body.inc"
#else
typedef int vn_no_avx2; /* a translation unit must not be empty */
#endif
