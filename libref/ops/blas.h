/* blas.h: which OpenBLAS kernels run, and whether they are the right ones.
 *
 * OpenBLAS picks its kernels by processor when it is loaded and falls back to
 * those of 2004 on processors newer than itself (0.3.21 on Intel family 6 model
 * 207: 56 instead of 300 GFLOP/s). Its choice can be set from outside only,
 * before it is loaded.
 */
#ifndef VN_LIBREF_OPS_BLAS_H
#define VN_LIBREF_OPS_BLAS_H

#include "libref/base/error.h"

/* Call first thing in main, where a model will be run: sets what libraries read from the environment only
 * while they are loaded, and starts the program again when something was missing.
 * What a person has set is left alone.
 *   OPENBLAS_CORETYPE             when the kernels are far below what the processor offers
 *   OPENBLAS_NUM_THREADS          1: threads of its own would each hold 128 MiB of address
 *                                 space, idle, and wait for them for ever where there are none
 *   GOMP_SPINCOUNT, KMP_BLOCKTIME waiting threads give the processor up after some
 *                                 microseconds instead of ten milliseconds: a capture's
 *                                 writer runs beside them, and so may other work */
void vn_settle(char **argv);

/* The decision on the kernels, for tests: what OPENBLAS_CORETYPE should
 * be, or NULL when `core` is good enough. avx2, avx512: what the processor has. */
const char *vn_blas_better(const char *core, int avx2, int avx512);

const char *vn_blas_core(void);    /* "SkylakeX" */
const char *vn_blas_version(void); /* "OpenBLAS 0.3.21 ..." */

/* One thread inside OpenBLAS from now on; ours are OpenMP's. */
void vn_blas_single(void);

/* Have OpenBLAS take, and keep, the working memory of so many threads at a time:
 * address space, of which products touch what they need. Where it cannot have it,
 * OpenBLAS asks again for ever in the middle of a product; this fails instead. So it
 * does where there is none for the threads' stacks. */
vn_status vn_blas_reserve(int threads, vn_error *err);

#endif
