/* fault_weights.c: faults of weights and linears (specs/faults.md, chapter W). */
#include "libref/plan/fault_internal.h"

#include "libref/base/dtype.h"

#include <stdlib.h>
#include <string.h>

/* Reads the same numbers with rows and columns exchanged. Makes a new weight, because others may
 * read the unmodified one: with the same bytes, or of a quantised weight, whose blocks cannot be
 * read across, in float32. */
vn_status vn_make_transposed(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int       w = f->plan->node[node].w[0];
	const vn_tensor from = f->weight[w];
	const size_t    n = (size_t)vn_shape_count(&from.shape);
	const vn_shape  turned = { .rank = 2, .dim = { from.shape.dim[1], from.shape.dim[0] } };
	vn_status       st;

	(void)r;
	if (vn_dtype_block(from.dtype) > 1) {
		float *numbers = malloc(n * sizeof *numbers + 1);
		if (numbers)
			vn_to_f32(numbers, from.data, from.dtype, n);
		st = vn_fault_replace(f, node, 0, (vn_tensor) { VN_F32, turned, numbers }, err);
	} else {
		int new = w;
		st = vn_fault_weight(f, w, &new, err);
		f->plan->node[node].w[0] = new;
		if (!st)
			f->plan->weight[new].shape = f->weight[new].shape = turned;
	}
	f->plan->node[node].c.linear.transposed ^= !st;
	return st;
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
	const vn_node   *n = vn_fault_unmodified(f, node), *o = vn_fault_beside(f->unmodified, n);
	const bool       up = vn_fault_point(f->unmodified, n) == VN_POINT_UP_PROJ;
	const int64_t    M = f->unmodified->weight[n->w[0]].shape.dim[0];
	const vn_arrange rows = arrange_joined((int)r->x, M);

	const vn_fault_joined both = { (const vn_node *[]) { up ? o : n, up ? n : o }, (int64_t[]) { M, M }, 2, up };

	return vn_fault_mix(f, node, &both, &rows, err);
}

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

vn_status vn_make_read_as_other(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int w = f->plan->node[node].w[0];
	int new;
	vn_status st;

	(void)r;
	if (f->weight[w].dtype != VN_F16 && f->weight[w].dtype != VN_BF16)
		return vn_fail(err, VN_ERR_USAGE, "weight %s is %s, not f16 or bf16", f->plan->weight[w].name,
		               vn_dtype_name(f->weight[w].dtype));
	if ((st = vn_fault_weight(f, w, &new, err)))
		return st;
	f->weight[new].dtype = f->weight[w].dtype == VN_F16 ? VN_BF16 : VN_F16;
	f->plan->node[node].w[0] = new;
	return VN_OK;
}
