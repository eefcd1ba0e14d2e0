/* fault_attention.c: faults of attention (specs/faults.md, chapter A). */
#include "libref/plan/fault_internal.h"

#include <math.h>

#define ATTN(n) ((n)->c.attention)

/* ---- scale ----------------------------------------------------------------------------- */

double vn_fault_scale(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_node *k = vn_fault_maker(p, n, VN_ATTN_K);
	const int      K = ATTN(n).head_dim;

	switch ((int)r->x) {
	case SCALE_MISSING: return 1.0;
	case SCALE_TWICE: return ATTN(n).scale * ATTN(n).scale;
	case SCALE_BY_WIDTH: return 1.0 / sqrt((double)vn_fault_width(p));
	case SCALE_BY_HEAD: return 1.0 / K;
	default: return 1.0 / sqrt((double)(k->op == VN_OP_ROPE ? k->c.rope.rope.rotary_dim : K));
	}
}

vn_status vn_make_set_scale(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	return vn_const_set(n, "scale", vn_fault_scale(r, f->plan, n), err);
}

/* ---- who sees whom ------------------------------------------------------------------------ */

/* x: vn_experiment.attention.blind, for a query that sees no key. */
vn_status vn_make_hides_own(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_status st = vn_const_set(&f->plan->node[node], "ahead", -1, err);
	return st ? st : vn_const_set(&f->plan->node[node], "blind", r->x, err);
}

vn_status vn_make_set_window(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	return vn_const_set(n, "window", r->x == 0 ? 0 : ATTN(n).window + r->x, err);
}

/* The window of the first layer with one. */
int vn_fault_window(const vn_plan *p)
{
	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_ATTENTION && ATTN(&p->node[i]).window)
			return ATTN(&p->node[i]).window;
	return 0;
}

vn_status vn_make_lend_window(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r;
	return vn_const_set(&f->plan->node[node], "window", vn_fault_window(f->plan), err);
}

/* ---- heads --------------------------------------------------------------------------------- */

vn_status vn_make_exchange_operands(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node  *n = &f->plan->node[node];
	const int other = (int)r->x, k = n->in[VN_ATTN_K];

	(void)err;
	n->in[VN_ATTN_K] = n->in[other];
	n->in[other] = k;
	return VN_OK;
}

/* Permutes the columns of the projection after an attention for a context with heads
 * innermost: W'[m, h K + k] = W[m, k H + h]. */
vn_status vn_make_inside_out(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node   *n = &f->plan->node[node];
	const int       *size = f->plan->value[n->in[0]].size;
	const vn_arrange inside = { VN_ARRANGE_TRANSPOSED, .a = size[2], .b = size[1] };

	(void)r;
	return vn_fault_arrange(f, node, 0, !n->c.linear.transposed, &inside, err);
}

/* (H,T,K) is read as (T,H K). */
vn_status vn_make_untransposed(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];

	(void)r;
	return vn_fault_follow(f, node, vn_fault_rows(n->layer, VN_ROWS_PARTS_FIRST, 0, ATTN(n).head_dim, n->out[0]), err);
}
