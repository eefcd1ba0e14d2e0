/* eval.c: which width a policy computes in. */
#include "libref/exec/eval_real.h"

const vn_eval *vn_eval_for(vn_policy p)
{
	static const vn_eval f32 = { VN_F32, vn_eval_node_f32, vn_eval_rows_f32 };
	static const vn_eval f64 = { VN_F64, vn_eval_node_f64, vn_eval_rows_f64 };
	return p.storage == VN_F64 ? &f64 : &f32;
}
