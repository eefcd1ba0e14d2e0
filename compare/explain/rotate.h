/* rotate.h: a rotation in double, with a mistake that no constant of the operation expresses: what its angles, or its tables of sines and
 * cosines, were rounded to; calls that count from 0, recorded as one; sine and cosine exchanged. */
#ifndef VN_COMPARE_ROTATE_H
#define VN_COMPARE_ROTATE_H

#include "compare/explain/hypothesis.h"

/* y, x (T,H,K): the rotation n of plan p at positions first, first + 1, ..., in a sequence of S tokens. False: no memory. */
bool vn_rotate_rows(const vn_plan *p, const vn_node *n, const vn_rotate_edit *edit, const double *x, int64_t first, int64_t T, int64_t S, int64_t H, int64_t K, double *y);

#endif
