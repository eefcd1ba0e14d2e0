/* kernel_avx512.c: the loops of kernel_body.inc for AVX-512 (F, BW, DQ, VL). */
#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")))
#define KERNEL_AVX2
#define KERNEL_AVX512
#define KERNEL      vn_metric_kernel_avx512
#define KERNEL_NAME "avx512"
#include "compare/metrics/kernel_body.inc"
#else
typedef int vn_no_avx512; /* a translation unit must not be empty */
#endif
