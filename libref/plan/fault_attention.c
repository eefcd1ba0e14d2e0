/* fault_attention.c: faults of attention (specs/faults.md, chapter A). */
#include "libref/plan/fault_internal.h"

#include <math.h>

#define ATTN(n) ((n)->c.attention)

double vn_fault_scale(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_node *k = vn_fault_maker(p, n, VN_ATTN_K);
	const int      K = ATTN(n).head_dim;

	switch ((int)r->x) {
	case SCALE_MISSING: return 1.0;
	case SCALE_TWICE: return ATTN(n).scale * ATTN(n).scale;
	case SCALE_BY_WIDTH: return 1.0 / sqrt((double)vn_fault_width(p));
	case SCALE_BY_HEAD: return 1.0 / K;
	case SCALE_NO_FACTOR: return 1.0 / sqrt((double)K);
	case SCALE_ROOT_FACTOR: return sqrt(ATTN(n).scale / sqrt((double)K));
	case SCALE_FACTOR_TWICE: return ATTN(n).scale * ATTN(n).scale * sqrt((double)K);
	default: return 1.0 / sqrt((double)(k->op == VN_OP_ROPE ? k->c.rope.rope.rotary_dim : K));
	}
}

bool vn_fault_has_mscale(const vn_plan *p, const vn_node *n)
{
	const vn_rope *r = NULL;

	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_ROPE && p->node[i].layer == n->layer)
			r = &p->node[i].c.rope.rope;
	return r && r->type == VN_ROPE_YARN && r->mscale_all_dim > 0 &&
	       !(fabs(ATTN(n).scale * sqrt((double)ATTN(n).head_dim) - 1.0) < 1e-9);
}

/* x: vn_experiment.attention.blind, for a query that sees no key. */
vn_status vn_make_hides_own(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_status st = vn_const_set(&f->plan->node[node], "ahead", -1, err);
	return st ? st : vn_const_set(&f->plan->node[node], "blind", r->x, err);
}

/* The key heads of the attention in the node's layer; 0: there is none. */
int vn_fault_kv_heads(const vn_plan *p, const vn_node *n)
{
	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_ATTENTION && p->node[i].layer == n->layer)
			return ATTN(&p->node[i]).kv_heads;
	return 0;
}

/* The window of the first layer with one. */
int vn_fault_window(const vn_plan *p)
{
	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_ATTENTION && ATTN(&p->node[i]).window)
			return ATTN(&p->node[i]).window;
	return 0;
}
