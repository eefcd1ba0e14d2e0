/* fault_gdn.c: faults of Gated DeltaNet and of gated attention (specs/faults.md, chapter G). */
#include "libref/plan/fault_internal.h"

/* Makes sqrt(sum / large + 1) equal 1. */
vn_status vn_make_not_normed(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_status st = vn_const_set(&f->plan->node[node], "divisor", 2147483647, err);

	(void)r;
	return st ? st : vn_const_set(&f->plan->node[node], "eps", 1.0, err);
}

/* The channels before the values: queries and keys come first. */
int vn_fault_before_values(const vn_plan *p, const vn_node *n)
{
	const int v = vn_fault_value(p, n->layer, VN_POINT_GDN_V);
	return v < 0 ? 0 : n->c.conv.channels - (int)vn_value_row(&p->value[v]);
}

/* x: how many heads on. */
vn_status vn_make_another_head(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];
	const int by = (int)r->x * f->plan->value[n->out[0]].size[2], all = (int)vn_value_row(&f->plan->value[n->out[0]]);

	if (n->op == VN_OP_GATED_NORM) /* that norm reads gates of other heads than those it norms */
		return vn_fault_feed(f, node, 1, vn_fault_rows(n->layer, VN_ROWS_ROUND, (by + all) % all, 0, n->in[1]), err);
	return vn_fault_arrange(f, node, 0, 0, &(vn_arrange) { VN_ARRANGE_ROUND, .a = by }, err);
}

/* The projection after a gate; the gate must fit its sizes. */
int vn_fault_behind_gate(const vn_plan *p, const vn_node *n)
{
	const int v = vn_fault_value(p, n->layer, VN_POINT_ATTN_OUT);
	return vn_fault_point(p, n) != VN_POINT_ATTN_GATED || v < 0 ||
	               vn_value_row(&p->value[v]) != vn_value_row(&p->value[n->in[0]])
	           ? -1
	           : p->value[v].node;
}

vn_status vn_make_gate_late(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int out = vn_fault_behind_gate(f->plan, &f->plan->node[node]);
	vn_node   gate = f->plan->node[node], flat = vn_fault_copy(f->plan, gate.layer, gate.in[0]); /* (T,D) */
	vn_status st;

	(void)r;
	vn_fault_copy_of(f, node, gate.in[1]);
	gate.in[1] = f->plan->node[out].out[0];
	if ((st = vn_fault_insert(f, out, flat, gate.in[1], &gate.in[0], err)))
		return st;
	return vn_fault_follow(f, out + 1, gate, err);
}
