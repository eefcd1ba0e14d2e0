/* fault_norms.c: faults of norms and of the residual stream (specs/faults.md, chapter N). */
#include "libref/plan/fault_internal.h"

#include <stdlib.h>
#include <string.h>

int vn_fault_columns(const vn_plan *p, const vn_node *n)
{
	const vn_value *y = &p->value[n->out[0]];
	return y->size[y->rank - 1];
}

/* ---- kinds of norms ------------------------------------------------------------------------ */

vn_status vn_make_layer_norm(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node].op = VN_OP_LAYER_NORM;
	f->plan->node[node].x.norm.width = 0;
	return VN_OK;
}

/* ---- norms left out, or too many ------------------------------------------------------------- */

vn_status vn_make_twice(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	int       once;
	vn_status st;

	(void)r;
	if (!(st = vn_fault_insert(f, node, f->plan->node[node], f->plan->node[node].out[0], &once, err)))
		f->plan->node[node + 1].in[0] = once;
	return st;
}

/* Inserts a norm of heads with weights of 1. */
vn_status vn_make_norm_heads(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_plan  *p = f->plan;
	const int       x = p->node[node].in[0], K = p->value[x].size[2];
	const vn_node  *final = &p->node[p->value[vn_fault_value(p, -1, VN_POINT_FINAL_NORM)].node];
	const vn_node   norm = { .op = VN_OP_RMS_NORM,
		                     .layer = p->node[node].layer,
		                     .c.norm.eps = final->c.norm.eps,
		                     .n_in = 1,
		                     .in = { x },
		                     .n_w = 1,
		                     .w = { final->w[0] } };
	double         *ones = malloc((size_t)K * sizeof *ones);
	const vn_status st = vn_fault_feed(f, node, 0, norm, err);

	(void)r;
	for (int i = 0; ones && i < K; i++)
		ones[i] = 1.0;
	if (st) {
		free(ones);
		return st;
	}
	return vn_fault_store(f, node, 0, &(vn_shape) { .rank = 1, .dim = { K } }, ones, err);
}

/* Moves the norm after the rotation; nothing reads the original norm any more. */
vn_status vn_make_norm_after(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node rotation = f->plan->node[node], norm = *vn_fault_maker(f->plan, &rotation, 0);
	vn_node       first = rotation;
	int           rotated;
	vn_status     st;

	(void)r;
	first.in[0] = norm.in[0];
	if ((st = vn_fault_insert(f, node, first, rotation.out[0], &rotated, err)))
		return st;
	vn_node *n = &f->plan->node[node + 1];
	n->op = norm.op;
	n->c = norm.c;
	n->x = norm.x;
	n->n_w = norm.n_w;
	memcpy(n->w, norm.w, sizeof n->w);
	n->in[0] = rotated;
	return VN_OK;
}

/* ---- the residual ---------------------------------------------------------------------------- */

/* The norm that reads the residual input of an addition; -1: none. */
int vn_fault_norm_of_sum(const vn_plan *p, const vn_node *n)
{
	const vn_point at = vn_fault_point(p, n);
	return at == VN_POINT_ATTN_RESIDUAL ? vn_fault_value(p, n->layer, VN_POINT_ATTN_NORM)
	       : at == VN_POINT_OUTPUT      ? vn_fault_value(p, n->layer, VN_POINT_MLP_NORM)
	                                    : -1;
}

/* The sum uses its input x twice. */
vn_status vn_make_doubled(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node sum = f->plan->node[node];

	sum.in[0] = sum.in[1] = sum.in[(int)r->x];
	return vn_fault_feed(f, node, (int)r->x, sum, err);
}

/* Norms the sum instead of its residual input, with the same weights. */
vn_status vn_make_post_norm(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_plan *p = f->plan;
	const vn_node *sum = &p->node[node];
	const int      before = p->value[vn_fault_norm_of_sum(p, sum)].node;
	vn_node        norm = p->node[before];
	vn_status      st;

	(void)r;
	norm.in[0] = sum->out[0];
	if (!(st = vn_fault_follow(f, node, norm, err)))
		vn_fault_copy_of(f, before, f->plan->node[before].in[0]);
	return st;
}

/* A norm behind a part of a layer norms the part's sum with the residual, to which nothing is added
 * any more. */
vn_status vn_make_sum_normed(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_plan *p = f->plan;
	const vn_node *norm = &p->node[node];
	const vn_point to = vn_fault_point(p, norm) == VN_POINT_ATTN_POST_NORM ? VN_POINT_ATTN_RESIDUAL : VN_POINT_OUTPUT;
	const int      at = p->value[vn_fault_value(p, norm->layer, to)].node;
	vn_node        sum = p->node[at];

	(void)r;
	sum.in[sum.in[1] == norm->out[0]] = norm->in[0];
	vn_fault_copy_of(f, at, norm->out[0]);
	return vn_fault_feed(f, node, 0, sum, err);
}

/* x: vn_rounding_format */
vn_status vn_make_narrow_squares(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_status st = vn_const_set(&f->plan->node[node], "squares", r->x, err);
	return st ? st : vn_const_set(&f->plan->node[node], "inverse", r->x, err);
}
