/* rotate.h: computes a rotation in double with a mistake that no constant of the operation can
 * express: rounded angles, or rounded tables of sine and cosine; calls recorded as one that each
 * count from 0; token ids for positions; sine and cosine exchanged. */
#ifndef VN_COMPARE_ROTATE_H
#define VN_COMPARE_ROTATE_H

#include "compare/explain/hypothesis.h"

/* Rotates x into y, both (T,H,K), by node n of plan p at positions first, first + 1, ... of a
 * sequence of S tokens. ids: of these T tokens. begins: of all tokens, if the edit needs it
 * (own_calls.h). Returns false if there is no memory. */
bool vn_rotate_rows(const vn_plan *p, const vn_node *n, const vn_rotate_edit *edit, const int32_t *ids,
                    const int64_t *begins, const double *x, int64_t first, int64_t T, int64_t S, int64_t H, int64_t K,
                    double *y);

#endif
