/* eval.h: one node of a plan on given inputs.
 *
 * The executor walks a plan with it; a replay calls it on somebody else's
 * tensors; an experiment calls it with a changed constant. It knows nothing of
 * what came before: everything a node reads is in vn_args.
 *
 * Numbers are floats (policies f32, f16, f16-acc16: every output is rounded to
 * the storage format) or doubles (f64), as vn_eval_for says.
 */
#ifndef VN_LIBREF_EXEC_EVAL_H
#define VN_LIBREF_EXEC_EVAL_H

#include "libref/plan/plan.h"
#include "libref/plan/policy.h"

typedef struct vn_args {
	vn_policy        policy;
	int              threads;
	int64_t          past, tokens;   /* the first token's position, and how many */
	const int32_t   *ids;            /* (tokens), for embed */
	const void      *in[VN_MAX_IN];  /* in the plan's shapes for `tokens` tokens */
	/* The node's states (vn_state). One that grows is only read, and the rows of
	 * this call are in it: (past + tokens, row). One of fixed size holds what the
	 * calls before left, and the node leaves there what it is now, rounded to the
	 * storage format unless it is wide. */
	void            *state[VN_MAX_STATE];
	const vn_tensor *w[VN_MAX_W];    /* NULL: absent */
	const vn_list   *lists;          /* the plan's */
	bool             wide;           /* the first output is not rounded to the storage format (vn_value_wide) */
} vn_args;

typedef struct vn_eval {
	vn_dtype width;                  /* VN_F32 or VN_F64: what inputs and outputs are */
	/* The first output, for all tokens. row: elements of one token's row of it,
	 * dim: of its last axis. VN_ERR_NOMEM is all that can fail. */
	vn_status (*node)(const vn_node *n, const vn_args *a, int64_t row, int64_t dim, void *out, vn_error *err);
	/* Output `slot` (VN_ATTN_SCORES or VN_ATTN_PROBS) of an attention: rows
	 * [row, row + rows) of one head, (rows, S). May run on several threads. */
	vn_status (*rows)(const vn_node *n, const vn_args *a, int slot, int64_t head, int64_t row, int64_t rows,
	                  void *out, vn_error *err);
} vn_eval;

const vn_eval *vn_eval_for(vn_policy p);

#endif
