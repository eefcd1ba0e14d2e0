/* fault_norms.c: faults of norms and of the residual stream (specs/faults.md, chapter N). */
#include "libref/plan/fault_internal.h"

#include <stdlib.h>
#include <string.h>

#define NORM(n) ((n)->c.norm)

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

/* x: columns less. */
vn_status vn_make_divisor(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_const_set(&f->plan->node[node], "divisor", vn_fault_columns(f->plan, &f->plan->node[node]) - r->x, err);
}

vn_status vn_make_all_heads(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	(void)r;
	return vn_const_set(n, "width", (double)vn_value_row(&f->plan->value[n->out[0]]), err);
}

/* ---- weights ------------------------------------------------------------------------------- */

vn_status vn_make_other_offset(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	(void)r;
	return vn_const_set(n, "offset", NORM(n).offset != 0.0 ? 0.0 : 1.0, err);
}

static void plus_one(const vn_fault_row *r, const vn_shape *s, const double *x, double *y)
{
	(void)r;
	for (int64_t i = 0; i < vn_shape_count(s); i++)
		y[i] = x[i] + 1.0;
}

vn_status vn_make_one_more(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_weight(r, f, node, 0, plus_one, err);
}

static void set_constant(const vn_fault_row *r, const vn_shape *s, const double *x, double *y)
{
	(void)x;
	for (int64_t i = 0; i < vn_shape_count(s); i++)
		y[i] = r->x;
}

vn_status vn_make_no_weight(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];
	vn_fault_row   with = *r;

	with.x = n->op == VN_OP_GATED_NORM ? 1.0 : 1.0 - NORM(n).offset;
	return vn_fault_change_weight(&with, f, node, 0, set_constant, err);
}

/* The norm whose weights a norm may get by mistake: that of keys for queries, that of the
 * feed-forward part for attention, and vice versa. */
const vn_node *vn_fault_partner(const vn_plan *p, const vn_node *n, bool heads)
{
	static const vn_point pair[][2] = { { VN_POINT_Q_NORM, VN_POINT_K_NORM },
		                                { VN_POINT_ATTN_NORM, VN_POINT_MLP_NORM } };
	const vn_point       *of = pair[!heads], mine = vn_fault_point(p, n);
	const int      v = mine == of[0] || mine == of[1] ? vn_fault_value(p, n->layer, mine == of[0] ? of[1] : of[0]) : -1;
	const vn_node *o = v < 0 ? NULL : &p->node[p->value[v].node];

	return o && o->n_w == n->n_w && vn_shape_equal(&p->weight[o->w[0]].shape, &p->weight[n->w[0]].shape) ? o : NULL;
}

vn_status vn_make_partners_weights(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *o = vn_fault_partner(f->unmodified, vn_fault_unmodified(f, node), r->x > 0);

	(void)err;
	memcpy(f->plan->node[node].w, o->w, sizeof o->w);
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
	const vn_plan *p = f->plan;
	const int      x = p->node[node].in[0], final = vn_fault_value(p, -1, VN_POINT_FINAL_NORM);
	const int      like = p->node[p->value[final].node].w[0], K = p->value[x].size[2];
	const vn_shape s = { .rank = 1, .dim = { K } };
	vn_node        norm = { .op = VN_OP_RMS_NORM, .layer = p->node[node].layer, .n_in = 1, .in = { x }, .n_w = 1 };
	double        *ones = malloc((size_t)K * sizeof *ones);
	int            normed;
	vn_status      st;

	(void)r;
	if (!ones)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a fault");
	for (int i = 0; i < K; i++)
		ones[i] = 1.0;
	NORM(&norm).eps = NORM(&p->node[p->value[final].node]).eps;
	if (!(st = vn_fault_weight(f, like, ones, &s, &norm.w[0], err)) &&
	    !(st = vn_fault_insert(f, node, norm, x, &normed, err)))
		f->plan->node[node + 1].in[0] = normed;
	return st;
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

vn_status vn_make_after_norm(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node].in[0] = vn_fault_norm_of_sum(f->plan, &f->plan->node[node]);
	return VN_OK;
}

vn_status vn_make_no_residual(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	vn_fault_copy_of(f, node, f->plan->node[node].in[1]);
	return VN_OK;
}

/* The sum uses its input x twice. */
vn_status vn_make_doubled(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node   sum = f->plan->node[node];
	int       two;
	vn_status st;

	sum.in[0] = sum.in[1] = sum.in[(int)r->x];
	if (!(st = vn_fault_insert(f, node, sum, sum.in[0], &two, err)))
		f->plan->node[node + 1].in[(int)r->x] = two;
	return st;
}

vn_status vn_make_parallel(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	(void)r, (void)err;
	n->in[0] = vn_fault_value(f->plan, n->layer, VN_POINT_INPUT);
	return VN_OK;
}

/* The sum of a layer and the norm that reads the sum's residual input, given either; -1: none. */
static void pair_of(const vn_plan *p, const vn_node *n, int *sum, int *norm)
{
	const vn_point at = vn_fault_point(p, n);

	*sum = n->op == VN_OP_ADD         ? n->out[0]
	       : at == VN_POINT_ATTN_NORM ? vn_fault_value(p, n->layer, VN_POINT_ATTN_RESIDUAL)
	       : at == VN_POINT_MLP_NORM  ? vn_fault_value(p, n->layer, VN_POINT_OUTPUT)
	                                  : -1;
	*norm = *sum < 0 ? -1 : vn_fault_norm_of_sum(p, &p->node[p->value[*sum].node]);
}

int vn_fault_norm_beside(const vn_plan *p, const vn_node *n)
{
	int sum, norm;

	pair_of(p, n, &sum, &norm);
	return norm;
}

/* Norms the sum instead of its residual input, with the same weights. Both nodes offer this fault,
 * which is made once. */
vn_status vn_make_post_norm(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_plan *p = f->plan;
	int            sum, before;
	vn_status      st;

	(void)r;
	pair_of(p, &p->node[node], &sum, &before);
	if (before < 0 || p->node[p->value[before].node].op == VN_OP_SLICE)
		return VN_OK;
	before = p->value[before].node;
	vn_node norm = p->node[before];
	norm.in[0] = sum;
	if (!(st = vn_fault_follow(f, p->value[sum].node, norm, err)))
		vn_fault_copy_of(f, before, f->plan->node[before].in[0]);
	return st;
}
