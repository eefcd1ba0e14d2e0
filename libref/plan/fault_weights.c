/* fault_weights.c: faults of weights and linears (specs/faults.md, chapter W). */
#include "libref/plan/fault_internal.h"

#include "libref/base/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const vn_shape *shape_of(const vn_plan *p, const vn_node *n)
{
	return &p->weight[n->w[0]].shape;
}

/* ---- the other way round -------------------------------------------------------------------- */

/* Reads the same bytes with rows and columns exchanged. Makes a new weight, because others may read
 * the unmodified one. */
vn_status vn_make_transposed(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int       w = f->plan->node[node].w[0];
	const vn_shape *s = &f->plan->weight[w].shape, transposed = { .rank = 2, .dim = { s->dim[1], s->dim[0] } };
	int new;
	const vn_status st = vn_fault_weight(f, w, NULL, &transposed, &new, err);

	(void)r;
	if (!st) {
		f->plan->node[node].w[0] = new;
		f->plan->node[node].c.linear.transposed = !f->plan->node[node].c.linear.transposed;
	}
	return st;
}

/* ---- gate and up ----------------------------------------------------------------------------- */

vn_status vn_make_exchange_gate_up(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node  *n = &f->plan->node[node];
	const int gate = n->in[0];

	(void)r, (void)err;
	n->in[0] = n->in[1];
	n->in[1] = gate;
	return VN_OK;
}

/* The projection next to this one. */
const vn_node *vn_fault_beside(const vn_plan *p, const vn_node *n, vn_point a, vn_point b)
{
	const vn_point at = vn_fault_point(p, n);
	const int      v = at == a || at == b ? vn_fault_value(p, n->layer, at == a ? b : a) : -1;
	const vn_node *o = v < 0 ? NULL : &p->node[p->value[v].node];

	return o && o->op == VN_OP_LINEAR && vn_shape_equal(shape_of(p, o), shape_of(p, n)) &&
	               (o->w[1] < 0) == (n->w[1] < 0)
	           ? o
	           : NULL;
}

vn_status vn_make_others_weights(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = vn_fault_unmodified(f, node),
				  *gate = vn_fault_beside(f->unmodified, n, VN_POINT_GATE_PROJ, VN_POINT_UP_PROJ);
	const vn_node *o = gate ? gate : vn_fault_beside(f->unmodified, n, VN_POINT_K_PROJ, VN_POINT_V_PROJ);

	(void)r, (void)err;
	memcpy(f->plan->node[node].w, o->w, sizeof o->w);
	return VN_OK;
}

/* For each row of the joined gate and up (M each), the row taken instead. The rows are read as
 * interleaved but stored as halves; as halves but stored interleaved; or as halves but stored as
 * halves of each of `how` ranks. */
static vn_arrange arrange_joined(int how, int64_t M)
{
	const int64_t ranks = how == FUSED_BY_HALVES ? M : how;

	return how == FUSED_BY_ROWS ? (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = M, .b = 2 }
	                            : (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = 2, .b = ranks, .each = M / ranks };
}

/* x: how the rows of gate and up are mixed up. */
vn_status vn_make_interleaved(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = vn_fault_unmodified(f, node),
				  *o = vn_fault_beside(f->unmodified, n, VN_POINT_GATE_PROJ, VN_POINT_UP_PROJ);
	const bool up = vn_fault_point(f->unmodified, n) == VN_POINT_UP_PROJ;
	vn_status  st = VN_OK;

	for (int k = 0; k < 2 && !st && n->w[k] >= 0; k++) {
		const vn_shape *s = &f->unmodified->weight[n->w[k]].shape;
		const size_t    M = (size_t)s->dim[0], row = s->rank > 1 ? (size_t)s->dim[1] : 1;
		double         *first = vn_fault_numbers(f, up ? o->w[k] : n->w[k]),
			   *second = vn_fault_numbers(f, up ? n->w[k] : o->w[k]);
		double          *y = vn_fault_numbers(f, n->w[k]);
		const vn_arrange rows = arrange_joined((int)r->x, (int64_t)M);
		int new = -1;
		for (size_t m = 0; first && second && y && m < M; m++) {
			const size_t from = (size_t)vn_arranged(&rows, (int64_t)(m + (up ? M : 0)), (int64_t)(2 * M));
			memcpy(y + m * row, from < M ? first + from * row : second + (from - M) * row, row * sizeof *y);
		}
		if (!first || !second || !y) {
			free(y);
			st = vn_fail(err, VN_ERR_NOMEM, "no memory for a fault");
		} else if (!(st = vn_fault_weight(f, n->w[k], y, NULL, &new, err))) {
			f->plan->node[node].w[k] = new;
		}
		free(first);
		free(second);
	}
	return st;
}

/* ---- biases ---------------------------------------------------------------------------------- */

vn_status vn_make_bias_times(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_each(r, f, node, 1, vn_fault_times, err);
}

vn_status vn_make_others_bias(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node]
		.w[1] = vn_fault_beside(f->unmodified, vn_fault_unmodified(f, node), VN_POINT_K_PROJ, VN_POINT_V_PROJ)->w[1];
	return VN_OK;
}

/* ---- another's weights ----------------------------------------------------------------------- */

/* x: distance in layers; 0: the first layer's. */
const vn_node *vn_fault_other_layer(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return vn_fault_twin(p, n, r->x == 0 ? 0 : n->layer + (int)r->x);
}

vn_status vn_make_twins_weights(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *o = vn_fault_other_layer(r, f->unmodified, vn_fault_unmodified(f, node));

	(void)err;
	memcpy(f->plan->node[node].w, o->w, sizeof o->w);
	return VN_OK;
}

/* The table of tokens. */
int vn_fault_embedding(const vn_plan *p)
{
	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_EMBED)
			return p->node[i].w[0];
	return -1;
}

vn_status vn_make_tied(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node].w[0] = vn_fault_embedding(f->plan);
	return VN_OK;
}

static double zero_number(const vn_fault_row *r, double x)
{
	(void)r, (void)x;
	return 0;
}

vn_status vn_make_never_loaded(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_each(r, f, node, 0, zero_number, err);
}

/* ---- formats --------------------------------------------------------------------------------- */

vn_status vn_make_read_as_other(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int w = f->plan->node[node].w[0];
	int new;
	vn_status st;

	(void)r;
	if (f->weight[w].dtype != VN_F16 && f->weight[w].dtype != VN_BF16)
		return vn_fail(err, VN_ERR_USAGE, "weight %s is %s, not f16 or bf16", f->plan->weight[w].name,
		               vn_dtype_name(f->weight[w].dtype));
	if ((st = vn_fault_weight(f, w, NULL, NULL, &new, err)))
		return st;
	f->weight[new].dtype = f->weight[w].dtype == VN_F16 ? VN_BF16 : VN_F16;
	f->plan->node[node].w[0] = new;
	return VN_OK;
}

static double truncate_number(const vn_fault_row *r, double x)
{
	float    a = (float)x;
	uint32_t bits;

	(void)r;
	memcpy(&bits, &a, 4);
	bits &= 0xFFFF0000u;
	memcpy(&a, &bits, 4);
	return (double)a;
}

/* Clamps what float16 would turn into an infinity or a subnormal. */
static double clamp_number(const vn_fault_row *r, double x)
{
	(void)r;
	return fabs(x) > 65504.0 ? copysign(65504.0, x) : fabs(x) < 0x1p-14 ? 0.0 : x;
}

vn_status vn_make_truncate_all(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_each(r, f, node, 0, truncate_number, err);
}

vn_status vn_make_clamp_all(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_each(r, f, node, 0, clamp_number, err);
}

/* Reads rows padded to a multiple of 16, and more, as if they had no padding. */
vn_status vn_make_shear(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_arrange unpadded = { VN_ARRANGE_PADDED, .a = f->weight[f->plan->node[node].w[0]].shape.dim[1],
		                          .b = (int64_t)r->x };

	return vn_fault_arrange(f, node, 0, -1, &unpadded, err);
}

/* Swaps the two halves of a table. */
vn_status vn_make_swap_halves(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r;
	return vn_fault_arrange(
		f, node, 0, 0, &(vn_arrange) { VN_ARRANGE_ROUND, .a = f->weight[f->plan->node[node].w[0]].shape.dim[0] / 2 },
		err);
}
