/* vocab_part.c: see vocab_part.h. */
#include "libref/plan/vocab_part.h"
#include "libref/plan/point.h"

#include <string.h>

bool vn_value_is_scores(const vn_plan *p, int value)
{
	const vn_value *v = &p->value[value];

	return v->rank == 2 && v->size[1] == p->vocab && strcmp(vn_point_get(v->point)->basis, "vocab") == 0;
}

bool vn_plan_has_vocab_part(const vn_plan *p)
{
	bool can = p->vocab >= 2 * VN_VOCAB_PART;

	for (int k = 0; can && k < p->n_nodes; k++) {
		const vn_node *n = &p->node[k];
		if (n->op == VN_OP_SCALE)
			continue;
		for (int i = 0; i < n->n_in; i++)
			can = can && (n->in[i] < 0 || !vn_value_is_scores(p, n->in[i]));
		for (int i = 0; i < n->n_out; i++)
			can = can && (n->out[i] < 0 || !vn_value_is_scores(p, n->out[i]) ||
			              (n->op == VN_OP_LINEAR && !n->c.linear.transposed));
	}
	return can;
}
