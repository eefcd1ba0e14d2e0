/* estimate_linear.h: estimates mistakes of a linear product whose number is not in the catalogue:
 * how often the bias was added, how many ranks there were and which of them are present, how shards
 * were joined, how far rows are padded. For changes of the matrix or the input, it calls
 * estimate_matrix.h. */
#ifndef VN_COMPARE_ESTIMATE_LINEAR_H
#define VN_COMPARE_ESTIMATE_LINEAR_H

#include "compare/trial/case.h"

/* Applies if the checkpoint is a linear product. The number is estimated from some rows and
 * channels and then tried. */
void vn_estimate_linear(vn_case *t);

#endif
