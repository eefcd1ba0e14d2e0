/* eval.c: which width a policy computes in. */
#include "libref/exec/eval_real.h"

#include "libref/ops/ops.h"

const vn_eval *vn_eval_for(vn_policy p)
{
	static const vn_eval f32 = { VN_F32, vn_eval_node_f32, vn_eval_rows_f32 };
	static const vn_eval f64 = { VN_F64, vn_eval_node_f64, vn_eval_rows_f64 };
	return p.storage == VN_F64 ? &f64 : &f32;
}

/* Of the few tokens that are summed in double, a product takes no time. */
bool vn_eval_shares(const vn_node *n, const vn_tensor *w, int64_t tokens, vn_policy a, vn_policy b)
{
	if (n->op != VN_OP_LINEAR || a.sums != VN_F32 || b.sums != VN_F32 || a.products || b.products)
		return false;
	const vn_matrix m = vn_matrix_of(w, n->c.linear.transposed != 0);
	return !vn_linear_is_small(&m, tokens);
}
