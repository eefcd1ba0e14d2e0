/* state.c: what the operations keep between calls. */
#include "libref/plan/op_internal.h"

/* Reads only constants and output indices: inputs and weights from a file are not checked yet. */
int vn_node_states(const vn_plan *p, int node, vn_state *s)
{
	static vn_op_states *const of[VN_N_OPS] = {
#define STATES(NAME, name) [VN_OP_##NAME] = vn_states_##name,
#include "libref/plan/op.def"
	};
	const vn_op op = p->node[node].op;

	return (unsigned)op < VN_N_OPS && of[op] ? of[op](p, node, s) : 0;
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

vn_status vn_plan_rewind(const vn_plan *p, int64_t *tokens, int64_t to, vn_error *err)
{
	if (to < 0 || to > *tokens)
		return vn_fail(err, VN_ERR_USAGE, "no way back to %lld tokens: there are %lld", (long long)to,
		               (long long)*tokens);
	for (int i = 0; to > 0 && to < *tokens && i < p->n_states; i++)
		if (p->state[i].input < 0)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "no way back to %lld tokens: %s keeps only the last of its %s",
			               (long long)to, p->value[p->node[p->state[i].node].out[0]].name, vn_state_word(p, i));
	*tokens = to;
	return VN_OK;
}
