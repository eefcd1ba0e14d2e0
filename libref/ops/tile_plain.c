/* tile_plain.c: the loops of tile_body.inc for any processor. arm64 has 32 registers. */
#define TARGET
#define KERNEL vn_tile_plain
#define LANES  4
#if defined(__aarch64__)
#define MOST 12
#else
#define MOST 6
#endif
#include "libref/ops/tile_body.inc"
