/* estimate_matrix.h: estimates how the matrix of a product, or its input, was changed
 * (edit_matrix.h): transposed, not loaded, its shards in another order than the inputs, rounded to
 * another format, or multiplied by a number. */
#ifndef VN_COMPARE_ESTIMATE_MATRIX_H
#define VN_COMPARE_ESTIMATE_MATRIX_H

#include "compare/estimate/linear_product.h"

vn_status vn_estimate_crossed_ranks(vn_tested_product *p, vn_error *err);
vn_status vn_estimate_matrix_edit(vn_tested_product *p, vn_error *err);
/* Of the weights alone, in a product with a bias. */
vn_status vn_estimate_matrix_factor(vn_tested_product *p, vn_error *err);

#endif
