/* eval.h: evaluates one node of a plan on given inputs.
 *
 * The reference engine executes plans with it, a replay calls it on another engine's tensors, and
 * an experiment calls it with a changed constant. It knows nothing about earlier nodes or calls:
 * everything that a node reads is in vn_args.
 *
 * Numbers are doubles for the policy f64, else floats (vn_eval_for); every output is rounded to the
 * storage format.
 */
#pragma once

#include "libref/plan/plan.h"
#include "libref/plan/policy.h"

typedef struct vn_args {
	vn_policy             policy;
	int                   threads;
	int64_t               past, tokens; /* position of the first token; number of tokens */
	int64_t               prompt;       /* of a later call, for an experiment: tokens of the first; else 0 */
	/* if these are only some tokens of a longer call: its tokens. Products then have the bits that
	 * they have in that call. 0: these are all */
	int64_t               of;
	const int32_t        *ids; /* (tokens), for the embedding, and for a rotation by ids */
	/* (tokens), for an experiment with VN_OWN_CALLS: where the call of each token begins
	 * (vn_call_begin); NULL: not known */
	const int64_t        *begins;
	const void           *in[VN_MAX_IN]; /* in the plan's shapes for this many tokens */
	/* The node's states (vn_state). A growing state is only read, and already includes the rows of
	 * this call: (past + tokens, row). A state of fixed size holds the result of earlier calls; the
	 * node replaces it by the new state, rounded to the storage format unless it is wide. */
	void                 *state[VN_MAX_STATE];
	const vn_tensor      *w[VN_MAX_W]; /* NULL: absent */
	const vn_list        *lists;       /* the plan's */
	/* the first output is not rounded to the storage format (vn_value_wide) */
	bool                  wide;
	/* For a product for which vn_eval_shares is true: also computes it in another policy, into
	 * another output. NULL: only `policy`. */
	const struct vn_also *also;
} vn_args;

typedef struct vn_also {
	vn_policy policy;
	bool      wide;
	void     *out;
} vn_also;

/* Returns the arguments of a node; the caller adds tokens, inputs and states. weights: (n_weights
 * of the plan). */
vn_args vn_eval_args(const vn_plan *plan, const vn_node *n, const vn_tensor *weights, vn_policy policy, int threads);

/* Can one evaluation compute this node in both policies (vn_args.also), if its inputs are equal?
 * Only products can, and only with more tokens than are summed in double. */
bool vn_eval_shares(const vn_node *n, const vn_tensor *w, int64_t tokens, vn_policy a, vn_policy b);

/* Rows [row, row + rows) of one head of output `slot` of an attention: VN_ATTN_SCORES or
 * VN_ATTN_PROBS. */
typedef struct vn_score_rows {
	int     slot;
	int64_t head, row, rows;
} vn_score_rows;

typedef struct vn_eval {
	vn_dtype width; /* type of inputs and outputs: VN_F32 or VN_F64 */
	/* Computes the first output for all tokens. row: elements of one token's row of it; dim: of its
	 * last axis. Fails only with VN_ERR_NOMEM. */
	vn_status (*node)(const vn_node *n, const vn_args *a, int64_t row, int64_t dim, void *out, vn_error *err);
	/* Computes some rows of scores, (rows, S). May run on several threads. */
	vn_status (*rows)(const vn_node *n, const vn_args *a, vn_score_rows s, void *out, vn_error *err);
	/* Rounds rows of n numbers to the format of a role. */
	void (*round)(void *x, int64_t rows, int64_t n, vn_role_format f, bool other_ties, int threads);
} vn_eval;

extern const vn_eval vn_evaluator_f32, vn_evaluator_f64;
/* Returns the evaluator of a policy. */
const vn_eval       *vn_eval_for(vn_policy p);

/* Rotates the rows of tokens, counted from position 0, in place, by a rope node (vn_keep_rule).
 * like: their number, policy and threads. rows: in the evaluator's width. */
vn_status vn_eval_rotate_rows(const vn_plan *plan, int node, vn_args like, void *rows, vn_error *err);
