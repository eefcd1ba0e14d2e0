/* tile_avx512.c: the loops of tile_body.inc for AVX-512, which has 32 registers. */
#if defined(__x86_64__)
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define KERNEL vn_tile_avx512
#define LANES  16
#define MOST   12
#include "libref/ops/tile_body.inc"
#else
typedef int vn_no_tile_avx512; /* a translation unit must not be empty */
#endif
