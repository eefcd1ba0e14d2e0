/* eval_real.h: the functions behind vn_eval, in both widths.
 *
 * row: elements of the output per token; dim: elements of the output's last axis.
 */
#ifndef VN_LIBREF_EXEC_EVAL_REAL_H
#define VN_LIBREF_EXEC_EVAL_REAL_H

#include "libref/exec/eval.h"

vn_status vn_eval_node_f32(const vn_node *n, const vn_args *a, int64_t row, int64_t dim, void *out, vn_error *err);
vn_status vn_eval_node_f64(const vn_node *n, const vn_args *a, int64_t row, int64_t dim, void *out, vn_error *err);
vn_status vn_eval_rows_f32(const vn_node *n, const vn_args *a, int slot, int64_t head, int64_t row, int64_t rows,
                           void *out, vn_error *err);
vn_status vn_eval_rows_f64(const vn_node *n, const vn_args *a, int slot, int64_t head, int64_t row, int64_t rows,
                           void *out, vn_error *err);

#endif
