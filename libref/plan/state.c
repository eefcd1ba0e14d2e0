/* state.c: what the operations keep between calls. */
#include "libref/plan/plan.h"

/* Reads only constants and output indices: inputs and weights from a file are not checked yet. */
int vn_node_states(const vn_plan *p, int node, vn_state *s)
{
	const vn_node *n = &p->node[node];

	if (n->op == VN_OP_ATTENTION && n->n_out > VN_ATTN_V_CACHE) {
		const int G = n->c.attention.kv_heads, K = n->c.attention.head_dim, U = vn_attention_value_dim(&n->c);
		s[VN_ATTN_KEYS] = (vn_state) { node, n->out[VN_ATTN_K_CACHE], VN_ATTN_K, false, 3, { VN_S, G, K } };
		s[VN_ATTN_VALUES] = (vn_state) { node, n->out[VN_ATTN_V_CACHE], VN_ATTN_V, false, 3, { VN_S, G, U } };
		return 2;
	}
	if (n->op == VN_OP_CAUSAL_CONV && n->n_out > 1 && n->c.conv.taps > 1) {
		*s = (vn_state) { node, n->out[1], -1, false, 2, { n->c.conv.taps - 1, n->c.conv.channels } };
		return 1;
	}
	if (n->op == VN_OP_DELAY && n->n_out > 1) {
		*s = (vn_state) { node, n->out[1], -1, false, 2, { 1, n->c.delay.columns } };
		return 1;
	}
	if (n->op == VN_OP_DELTA_RULE && n->n_out > 1) {
		const int nv = n->c.delta.value_heads, dk = n->c.delta.key_dim, dv = n->c.delta.value_dim;
		*s = (vn_state) { node, n->out[1], -1, true, 3, { nv, dk, dv } };
		return 1;
	}
	return 0;
}

const char *vn_state_word(const vn_plan *p, int state)
{
	const vn_node *n = &p->node[p->state[state].node];

	return vn_op_get(n->op)->state[state - n->state[0]];
}

int64_t vn_state_row(const vn_state *s)
{
	int64_t n = 1;
	for (int i = s->input >= 0; i < s->rank; i++)
		n *= s->size[i];
	return n;
}
