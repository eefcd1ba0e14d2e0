/* fault_experts.c: faults of experts (specs/faults.md, chapter E). */
#include "libref/plan/fault_internal.h"

/* All experts read gate for up, and the reverse. */
vn_status vn_make_exchange_weights(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	int      *w = f->plan->node[node].w;
	const int gate = w[VN_EXPERT_GATE];

	(void)r, (void)err;
	w[VN_EXPERT_GATE] = w[VN_EXPERT_UP];
	w[VN_EXPERT_UP] = gate;
	w += VN_EXPERT_KINDS; /* biases */
	const int bias = w[VN_EXPERT_GATE];
	w[VN_EXPERT_GATE] = w[VN_EXPERT_UP];
	w[VN_EXPERT_UP] = bias;
	return VN_OK;
}

/* The shared expert (T,1,D) becomes what its gate would have made of it (T,D). */
vn_status vn_make_ungated(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node  *n = &f->plan->node[node];
	const int x = n->in[VN_COMBINE_X], y = n->out[0], D = (int)vn_value_row(&f->plan->value[y]);

	(void)r, (void)err;
	*n = (vn_node) {
		.op = VN_OP_SLICE, .layer = n->layer, .c.slice = { D, 0, D }, .n_in = 1, .in = { x }, .n_out = 1, .out = { y }
	};
	return VN_OK;
}

/* x: how many layers on. The node gets weights of its own, of which those of the first expert are
 * the other layer's. */
vn_status vn_make_lent_expert(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *o = vn_fault_other_layer(r, f->unmodified, vn_fault_unmodified(f, node));
	const int      experts = f->plan->node[node].c.experts.experts;
	vn_status      st = VN_OK;

	for (int k = 0; !st && k < VN_EXPERT_KINDS; k++) {
		const int was = f->plan->node[node].w[k], first = f->plan->n_weights;
		int       weight;
		for (int e = 0; !st && e < experts; e++)
			st = vn_fault_weight(f, e ? was + e : o->w[k], &weight, err);
		f->plan->node[node].w[k] = st ? was : first;
	}
	return st;
}
