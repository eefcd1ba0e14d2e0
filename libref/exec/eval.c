/* eval.c: which width a policy computes in. */
#include "libref/exec/eval.h"

#include "libref/ops/ops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const vn_eval *vn_eval_for(vn_policy p)
{
	return p.storage == VN_F64 ? &vn_evaluator_f64 : &vn_evaluator_f32;
}

/* A product of so few tokens that it is summed in double takes no time. An experiment computes one
 * otherwise, and alone. */
bool vn_eval_shares(const vn_node *n, const vn_tensor *w, int64_t tokens, vn_policy a, vn_policy b)
{
	if (n->op != VN_OP_LINEAR || vn_node_experiment(n) || a.sums != VN_F32 || b.sums != VN_F32 || a.products ||
	    b.products || vn_policy_mixed(a) || vn_policy_mixed(b))
		return false;
	const vn_matrix m = vn_matrix_of(w, n->c.linear.transposed != 0);
	return !vn_linear_is_small(&m, tokens);
}

vn_args vn_eval_args(const vn_plan *plan, const vn_node *n, const vn_tensor *weights, vn_policy policy, int threads)
{
	vn_args a = { .policy = policy, .threads = threads, .lists = plan->list, .wide = vn_value_wide(plan, n->out[0]) };
	for (int i = 0; i < n->n_w; i++)
		a.w[i] = n->w[i] >= 0 ? &weights[n->w[i]] : NULL;
	return a;
}

vn_status vn_eval_rotate_rows(const vn_plan *plan, int node, vn_args like, void *rows, vn_error *err)
{
	const vn_eval  *eval = vn_eval_for(like.policy);
	const int64_t   tokens = like.tokens;
	const vn_node  *n = &plan->node[node];
	const vn_value *v = &plan->value[n->out[0]];
	const int64_t   row = vn_value_row(v);
	const size_t    bytes = (size_t)(tokens * row) * vn_dtype_size(eval->width);
	VN_FREED void  *made = malloc(bytes + 1);
	const vn_args   a = {
		  .policy = like.policy, .threads = like.threads, .tokens = tokens, .lists = plan->list, .in = { rows }
	};
	vn_status st;

	if (!made)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the rows of %" PRId64 " tokens", tokens);
	if (!(st = eval->node(n, &a, row, v->size[v->rank - 1], made, err)))
		memcpy(rows, made, bytes);
	return st;
}
