/* estimate_matrix.h: estimates how the matrix of a product, or its input, was changed
 * (apply_matrix.h): transposed, not loaded, its shards in another order than the inputs, rounded to
 * another format, or multiplied by a number. */
#ifndef VN_COMPARE_ESTIMATE_MATRIX_H
#define VN_COMPARE_ESTIMATE_MATRIX_H

#include "compare/estimate/linear_product.h"

/* Fits the order in which the shards of several ranks met their inputs, if it was a wrong one. */
void vn_estimate_crossed_ranks(vn_tested_product *p);
/* Tries every edit of matrix or input on the tested rows and channels, and the best one in full. */
void vn_estimate_matrix_edit(vn_tested_product *p);
/* Fits a factor of the weights, in a product with a bias that has its own size. */
void vn_estimate_matrix_factor(vn_tested_product *p);

#endif
