/* blas.h: the matrix products of OpenBLAS, which is loaded when a model is first run.
 *
 * OpenBLAS takes 40 MB of address space when it is loaded, and what it cannot have
 * later it asks for again for ever. A command that runs no model never loads it.
 *
 * OpenBLAS picks its kernels by processor while it is loaded and falls back to
 * those of 2004 on processors newer than itself (0.3.21 on Intel family 6 model
 * 207: 56 instead of 300 GFLOP/s). Where it does, it is loaded again with
 * OPENBLAS_CORETYPE set; what a person has set there is left alone.
 *
 * Threads  prepare from any thread, the products from many at a time. The first
 *          prepare changes the environment for as long as it takes to load: no
 *          other thread may read the environment meanwhile.
 */
#ifndef VN_LIBREF_OPS_BLAS_H
#define VN_LIBREF_OPS_BLAS_H

#include "libref/base/error.h"

/* Call before products: loads OpenBLAS where that is still to be done, for good, with one
 * thread of its own (ours are OpenMP's), and has it take, and keep, the working memory
 * of so many threads at a time: address space, of which products touch what they
 * need. Fails where OpenBLAS is not there, where it gets no address space, and where
 * there is none for the threads' stacks. */
vn_status vn_blas_prepare(int threads, vn_error *err);

/* Does the second matrix lie as the product reads it, or turned over? */
typedef enum { VN_AS_IT_LIES, VN_TURNED } vn_lie;

/* c (m,n) = scale a (m,k) b (k,n); VN_TURNED: b lies as (n,k). a_row, b_row, c_row:
 * numbers from a row to the next. Only after vn_blas_prepare. */
void vn_gemm_f32(vn_lie lie, int m, int n, int k, float scale, const float *a, int a_row, const float *b, int b_row, float *c,
                 int c_row);
void vn_gemm_f64(vn_lie lie, int m, int n, int k, double scale, const double *a, int a_row, const double *b, int b_row, double *c,
                 int c_row);

/* "SkylakeX", "OpenBLAS 0.3.21 ..."; only after vn_blas_prepare. */
const char *vn_blas_core(void);
const char *vn_blas_version(void);

/* The decision on the kernels, for tests: what OPENBLAS_CORETYPE should
 * be, or NULL when `core` is good enough. avx2, avx512: what the processor has. */
const char *vn_blas_better(const char *core, int avx2, int avx512);

#endif
