/* fault_reads.c: faults in which an operation is right but reads another layer's or operation's
 * data (specs/faults.md, chapters N, P and C). */
#include "libref/plan/fault_internal.h"

/* The previous layer's counterpart of a value; -1: none of the same shape. */
int vn_fault_before(const vn_plan *p, int value)
{
	const vn_value *v = &p->value[vn_plan_root(p, value)];
	const int       o = v->layer > 0                                   ? vn_fault_value(p, v->layer - 1, v->point)
	                    : v->layer == 0 && v->point == VN_POINT_OUTPUT ? vn_fault_value(p, -1, VN_POINT_EMBED)
	                                                                   : -1;
	bool same = o >= 0 && p->value[o].rank == v->rank && p->value[o].wide == v->wide && !p->value[o].on_demand;

	for (int i = 0; same && i < v->rank; i++)
		same = p->value[o].size[i] == v->size[i];
	return same ? o : -1;
}

vn_status vn_make_cache_before(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];

	(void)err;
	for (int i = VN_ATTN_K; i <= VN_ATTN_V; i++)
		if (r->x == 0 || r->x == i)
			n->in[i] = vn_fault_before(f->plan, n->in[i]);
	return VN_OK;
}

/* The value that a layer's first sum reads, which the second sum is to read. */
int vn_fault_first_base(const vn_plan *p, const vn_node *n)
{
	const vn_node *sum = vn_fault_maker(p, n, 0);
	return vn_fault_point(p, n) == VN_POINT_OUTPUT && sum->op == VN_OP_ADD && sum->layer == n->layer ? sum->in[0] : -1;
}
