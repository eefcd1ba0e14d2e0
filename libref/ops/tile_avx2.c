/* tile_avx2.c: the loops of tile_body.inc for AVX2 with FMA, which has 16 registers. */
#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,fma")))
#define KERNEL vn_tile_avx2
#define LANES  8
#define MOST   6
#include "libref/ops/tile_body.inc"
#else
typedef int vn_no_tile_avx2; /* a translation unit must not be empty */
#endif
