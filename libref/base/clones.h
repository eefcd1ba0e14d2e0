/* clones.h: one source, several vector widths, the same digits.
 *
 * A function marked VN_CLONES is compiled for AVX-512, AVX2 and the baseline,
 * and the processor decides at load time. Its loops must sum in lanes written
 * out in the source, and the file must be built with -ffp-contract=off: then
 * every version gives the same bits. clang 14 cannot do this for static
 * functions; there it is the baseline.
 */
#ifndef VN_LIBREF_BASE_CLONES_H
#define VN_LIBREF_BASE_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define VN_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VN_CLONES
#endif

#endif
