/* fault_gdn.c: faults of Gated DeltaNet and of gated attention (specs/faults.md, chapter G). */
#include "libref/plan/fault_internal.h"

#include <math.h>
#include <string.h>

/* ---- decay and beta ------------------------------------------------------------------------- */

static void set_zeros(const vn_fault_row *r, const vn_shape *s, const double *x, double *y)
{
	(void)r, (void)x;
	memset(y, 0, (size_t)vn_shape_count(s) * sizeof *y);
}

vn_status vn_make_no_dt(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_weight(r, f, node, 1, set_zeros, err);
}

vn_status vn_make_exchange_beta_decay(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = vn_fault_unmodified(f, node);
	const int      v = vn_fault_value(f->unmodified, n->layer,
                                 vn_fault_point(f->unmodified, n) == VN_POINT_GDN_B ? VN_POINT_GDN_A : VN_POINT_GDN_B);

	(void)r, (void)err;
	memcpy(f->plan->node[node].w, f->unmodified->node[f->unmodified->value[v].node].w, sizeof n->w);
	return VN_OK;
}

/* ---- queries and keys ------------------------------------------------------------------------ */

/* Makes sqrt(sum / large + 1) equal 1. */
vn_status vn_make_not_normed(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_status st = vn_const_set(&f->plan->node[node], "divisor", 2147483647, err);

	(void)r;
	return st ? st : vn_const_set(&f->plan->node[node], "eps", 1.0, err);
}

vn_status vn_make_by_mean(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_value *y = &f->plan->value[f->plan->node[node].out[0]];
	(void)r;
	return vn_const_set(&f->plan->node[node], "divisor", y->size[y->rank - 1], err);
}

/* ---- the convolution ------------------------------------------------------------------------- */

vn_status vn_make_reverse(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r;
	return vn_fault_arrange(f, node, 0, f->weight[f->plan->node[node].w[0]].shape.rank - 1,
	                        &(vn_arrange) { VN_ARRANGE_REVERSED, .each = 1 }, err);
}

/* The channels before the values: queries and keys come first. */
int vn_fault_before_values(const vn_plan *p, const vn_node *n)
{
	const int v = vn_fault_value(p, n->layer, VN_POINT_GDN_V);
	return v < 0 ? 0 : n->c.conv.channels - (int)vn_value_row(&p->value[v]);
}

vn_status vn_make_queries_and_keys(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	(void)r;
	return vn_const_set(n, "linear", vn_fault_before_values(f->plan, n) + 1, err);
}

/* Values first. */
vn_status vn_make_values_first(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node  *n = &f->plan->node[node];
	const int values = (int)vn_value_row(&f->plan->value[vn_fault_value(f->plan, n->layer, VN_POINT_GDN_V)]);

	(void)r;
	return vn_const_set(n, "from", vn_fault_point(f->plan, n) == VN_POINT_GDN_V ? 0 : n->c.slice.from + values, err);
}

vn_status vn_make_channels_round(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];

	(void)r;
	return vn_fault_follow(
		f, node, vn_fault_rows(n->layer, VN_ROWS_ROUND, vn_fault_before_values(f->plan, n), 0, n->out[0]), err);
}

/* ---- gates ----------------------------------------------------------------------------------- */

/* x: how many heads on. */
vn_status vn_make_another_head(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];
	const int by = (int)r->x * f->plan->value[n->out[0]].size[2], all = (int)vn_value_row(&f->plan->value[n->out[0]]);

	if (n->op == VN_OP_GATED_NORM) { /* that norm reads gates of other heads than those it norms */
		const int z = n->in[1];
		int       v;
		vn_status st = vn_fault_insert(f, node, vn_fault_rows(n->layer, VN_ROWS_ROUND, (by + all) % all, 0, z), z, &v,
		                               err);
		if (!st)
			f->plan->node[node + 1].in[1] = v;
		return st;
	}
	return vn_fault_arrange(f, node, 0, 0, &(vn_arrange) { VN_ARRANGE_ROUND, .a = by }, err);
}

vn_status vn_make_no_gate(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	vn_fault_copy_of(f, node, f->plan->node[node].in[1]);
	return VN_OK;
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
	const int out = vn_fault_behind_gate(f->plan, &f->plan->node[node]),
			  row = (int)vn_value_row(&f->plan->value[f->plan->node[out].out[0]]);
	vn_node gate = f->plan->node[node];
	vn_node flat = {
		.op = VN_OP_SLICE, .layer = gate.layer, .c.slice = { row, 0, row }, .n_in = 1, .in = { gate.in[0] }
	}; /* (T,D) */
	vn_status st = vn_make_no_gate(r, f, node, err);

	gate.in[1] = f->plan->node[out].out[0];
	if (st || (st = vn_fault_insert(f, out, flat, gate.in[1], &gate.in[0], err)))
		return st;
	return vn_fault_follow(f, out + 1, gate, err);
}
