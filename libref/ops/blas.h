/* blas.h: which OpenBLAS kernels run, and whether they are the right ones.
 *
 * OpenBLAS picks its kernels by processor when it is loaded and falls back to
 * those of 2004 on processors newer than itself (0.3.21 on Intel family 6 model
 * 207: 56 instead of 300 GFLOP/s). Its choice can be set from outside only,
 * before it is loaded.
 */
#ifndef VN_LIBREF_OPS_BLAS_H
#define VN_LIBREF_OPS_BLAS_H

/* Call first thing in main. When the kernels are far below what the processor
 * offers, starts the program again with OPENBLAS_CORETYPE set and does not
 * return; a person's own OPENBLAS_CORETYPE is left alone. */
void vn_blas_correct(char **argv);

/* The same decision on given words, for tests: what OPENBLAS_CORETYPE should
 * be, or NULL when `core` is good enough. avx2, avx512: what the processor has. */
const char *vn_blas_better(const char *core, int avx2, int avx512);

const char *vn_blas_core(void);    /* "SkylakeX" */
const char *vn_blas_version(void); /* "OpenBLAS 0.3.21 ..." */

/* One thread inside OpenBLAS from now on; ours are OpenMP's. */
void vn_blas_single(void);

#endif
