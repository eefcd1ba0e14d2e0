/* blas.h: matrix products in double by OpenBLAS, which is loaded when a model is first run.
 *
 * OpenBLAS takes 40 MB of address space when it is loaded, and retries for ever if it cannot get
 * more later. A command that runs no model never loads it.
 *
 * OpenBLAS selects its kernels by processor when it is loaded, and falls back to those of 2004 on
 * processors newer than itself (0.3.21 on Intel family 6 model 207: 56 instead of 300 GFLOP/s). In
 * that case it is loaded again with OPENBLAS_CORETYPE set, unless the user has set it.
 *
 * Threads  prepare from any thread, products from many at a time. The first prepare changes the
 *          environment while it loads: no other thread may read the environment meanwhile.
 */
#pragma once

#include "libref/base/error.h"

/* Call before products. Loads OpenBLAS once, with one thread of its own (ours are OpenMP's), and
 * makes it reserve the working memory for this many threads: address space; products touch only
 * what they need. Fails if OpenBLAS is not installed, or if there is no address space for it
 * or for the threads' stacks. */
vn_status vn_blas_prepare(int threads, vn_error *err);

/* Is the second matrix stored as the product reads it, or transposed? */
typedef enum { VN_BLAS_AS_STORED, VN_BLAS_TRANSPOSED } vn_blas_layout;

typedef struct vn_gemm_size {
	vn_blas_layout layout; /* of b */
	int            m, n, k;
} vn_gemm_size;

/* c (m,n) = scale a (m,k) b (k,n). VN_BLAS_TRANSPOSED: b is stored as (n,k). c_row: its row stride
 * in numbers; a and b are contiguous. Requires vn_blas_prepare. */
void vn_gemm_f64(vn_gemm_size size, double scale, const double *a, const double *b, double *c, int c_row);

/* "SkylakeX", "OpenBLAS 0.3.21 ..."; require vn_blas_prepare. */
const char *vn_blas_core(void);
const char *vn_blas_version(void);

/* The choice of kernels, for tests: returns the value for OPENBLAS_CORETYPE, or NULL if `core` is
 * good enough. avx2, avx512: what the processor has. */
const char *vn_blas_better(const char *core, int avx2, int avx512);
