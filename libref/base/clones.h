/* clones.h: compiles one function for several vector widths, with bit-identical results.
 *
 * A function marked VN_CLONES is compiled for AVX-512, AVX2 and the baseline; the processor's
 * version is chosen at load time. Its loops must sum in lanes that are written out in the source,
 * and the file must be built with -ffp-contract=off: then every version gives the same bits. clang
 * 14 cannot do this for static functions; it compiles only the baseline.
 */
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define VN_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VN_CLONES
#endif
