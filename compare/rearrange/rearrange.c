/* rearrange.c: see rearrange.h. */
#include "compare/rearrange/rearrange.h"
#include "compare/rearrange/rearranged.h"
#include "compare/hypothesis/catalogue.h"
#include "compare/rearrange/rearrange_number.h"
#include "compare/hypothesis/score.h"

#include "libref/base/arrange.h"
#include "libref/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT_MAX = 4 };

/* ---- order ----------------------------------------------------------------------------------- */

/* Writes row from(i) as row i; zeros if from(i) is -1. There are `outer` blocks of `rows` rows. */
static void gather_rows(vn_rearranged *r, int64_t outer, int64_t rows, const int *from)
{
	const int64_t row = r->n / outer / rows;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < rows; i++) {
			const int64_t to = (o * rows + i) * row;
			for (int k = 0; k < 2; k++) {
				double       *y = k ? r->b : r->a;
				const double *x = k ? r->fine : r->own;
				if (from[i] < 0)
					memset(y + to, 0, (size_t)row * sizeof *y);
				else
					memcpy(y + to, x + (o * rows + from[i]) * row, (size_t)row * sizeof *y);
			}
		}
}

/* For each row of the candidate along an axis, the row of the unmodified result that is nearest
 * to it. */
static void find_nearest_heads(const vn_rearranged *r, int64_t outer, int64_t rows, int *from)
{
	const int64_t row = r->n / outer / rows;
	for (int64_t i = 0; i < rows; i++) {
		from[i] = (int)i; /* for NaN, which has no distance */
		double least = (double)INFINITY;
		for (int64_t j = 0; j < rows; j++) {
			double dd = 0;
			for (int64_t o = 0; o < outer && dd < least; o++)
				for (int64_t k = 0; k < row; k++) {
					const double d = r->cand[(o * rows + i) * row + k] - r->own[(o * rows + j) * row + k];
					dd += d * d;
				}
			if (dd < least) {
				least = dd;
				from[i] = (int)j;
			}
		}
	}
}

static vn_status try_heads(vn_rearranged *r, const char *axes, vn_error *err)
{
	vn_hypothesis h = { .finding = VN_HEADS_REORDERED };
	int          *from = h.change.result.list, axis = 0;
	int64_t       outer = 1;
	bool          moved = false;

	for (size_t n; axis < r->like->shape.rank; axis++) {
		const char *word = vn_axes_word(axes, axis, &n);
		if (n >= 4 && strncmp(word + n - 4, "head", 4) == 0)
			break;
		outer *= r->like->shape.dim[axis];
	}
	if (axis >= r->like->shape.rank || r->like->shape.dim[axis] < 2 || r->like->shape.dim[axis] > VN_LIST_MOST)
		return VN_OK;
	const int64_t H = r->like->shape.dim[axis];
	find_nearest_heads(r, outer, H, from);
	for (int64_t i = 0; i < H; i++)
		moved = moved || from[i] != i;
	if (!moved)
		return VN_OK;
	h.change.result.n = (int)H;
	gather_rows(r, outer, H, from);
	return vn_rearranged_judge_order(r, &h, err);
}

static vn_status try_rows(vn_rearranged *r, vn_hypothesis h, vn_arrange order, vn_error *err)
{
	const int64_t T = r->like->shape.dim[0];
	int          *from = malloc((size_t)T * sizeof *from);

	if (!from)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for rows");
	for (int64_t i = 0; i < T; i++)
		from[i] = (int)vn_arranged(&order, i, T);
	gather_rows(r, 1, T, from);
	free(from);
	return vn_rearranged_judge_order(r, &h, err);
}

/* Tries rows moved by some places. Rows from outside are zeros, or repeat the first or last row. */
static vn_status try_moved_rows(vn_rearranged *r, const char *axes, vn_error *err)
{
	static const vn_arrange_rule ways[] = { VN_ARRANGE_MOVED, VN_ARRANGE_ROUND, VN_ARRANGE_SHIFTED };
	const int64_t                T = r->like->shape.dim[0];
	const bool                   tokens = strncmp(axes, "token", 5) == 0;
	vn_status                    st = VN_OK;

	for (int by = -SHIFT_MAX; !st && T > 2 * SHIFT_MAX && tokens && by <= SHIFT_MAX; by++)
		for (size_t i = 0; !st && by && i < sizeof ways / sizeof *ways; i++)
			st = try_rows(r, (vn_hypothesis) { .finding = VN_TOKENS_MOVED, .change.result.number = by },
			              (vn_arrange) { .rule = ways[i], .a = by }, err);
	if (!st && T > 2 && tokens)
		st = try_rows(r, (vn_hypothesis) { .finding = VN_TOKENS_REVERSED },
		              (vn_arrange) { .rule = VN_ARRANGE_REVERSED }, err);
	return st;
}

static vn_status try_transposed_axes(vn_rearranged *r, vn_error *err)
{
	/* If the run continued with these numbers, the recording is not at fault. */
	const vn_plan   *plan = r->t->site->plan;
	const bool       joined = plan->node[plan->value[r->t->site->target].node].op == VN_OP_ATTENTION;
	static const int orders[][4] = { { 1, 0, 2, 3 }, { 0, 2, 1, 3 }, { 2, 1, 0, 3 }, { 1, 2, 0, 3 }, { 2, 0, 1, 3 } };
	const vn_shape  *s = &r->like->shape;
	vn_status        st = VN_OK;

	for (size_t i = 0; !st && i < (s->rank == 2 ? 1u : sizeof orders / sizeof *orders); i++) {
		const bool inside = joined && orders[i][0] == 0 && orders[i][1] == 2,
				   outside = joined && i == 0 && s->rank == 3;
		vn_hypothesis h = { .finding = r->t->consumed != VN_CONSUMED_AS_RECORDED ? VN_AXES_RECORDED
			                           : inside                                  ? VN_AXES_OF_HEADS
			                           : outside                                 ? VN_AXES_BEFORE_TOKENS
			                                                                     : VN_AXES,
			                .recorder_fault = r->t->consumed == VN_CONSUMED_OTHERS,
			                .change.result.n = s->rank };
		if (s->rank < 2 || s->rank > 3)
			return VN_OK;
		const vn_permutation axes = vn_permutation_of(s, orders[i]);
		vn_permute(r->a, r->own, &axes);
		vn_permute(r->b, r->fine, &axes);
		memcpy(h.change.result.list, orders[i], (size_t)s->rank * sizeof *orders[i]);
		st = vn_rearranged_judge_order(r, &h, err);
	}
	return st;
}

/* ---- another checkpoint ---------------------------------------------------------------------- */

/* Equal bits with another checkpoint point to the capture if the run continued with other
 * numbers. If that is unknown, a checkpoint that copies this one proves nothing: a cache, or a
 * rotation by zero. */
static bool may_be_taken_for(const vn_rearranged *r, const vn_entry *e)
{
	const vn_plan *p = r->t->site->plan;
	const int      v = vn_plan_find(p, e->name), me = vn_plan_find(p, r->t->c->result.point[r->t->x->point].name);
	const int      root = v < 0 ? -1 : vn_plan_root(p, v), mine = vn_plan_root(p, me);

	if (r->t->consumed == VN_CONSUMED_AS_RECORDED || root == mine)
		return false;
	/* computed from it in the same layer; later layers mix in other numbers */
	return root < 0 || r->t->consumed == VN_CONSUMED_OTHERS
	           ? root < 0 || p->value[root].state < 0
	           : p->value[root].layer != p->value[mine].layer || !vn_is_made_of(p, root, mine);
}

/* Was it computed after this checkpoint? Then it overwrote this buffer, and is not a stale
 * value. */
static bool comes_later(const vn_rearranged *r, const vn_entry *e)
{
	const vn_plan *p = r->t->site->plan;
	const int      v = vn_plan_find(p, e->name);
	return v >= 0 && p->value[vn_plan_root(p, v)].node > p->value[r->t->site->target].node;
}

/* The MLP is right on inputs with which the sum after it is wrong, and these are the layer's
 * inputs: the block is parallel. What was recorded as the residual is what the norm read. */
static bool is_parallel(const vn_rearranged *r, const vn_entry *e)
{
	const vn_plan *p = r->t->site->plan;
	const int      v = vn_plan_find(p, e->name), mine = r->t->site->target;

	if (v < 0 || p->value[mine].point != VN_POINT_ATTN_RESIDUAL || r->t->consumed != VN_CONSUMED_OTHERS ||
	    !vn_consumed_as_recorded(r->t))
		return false;
	const vn_node *sum = &p->node[p->value[mine].node];
	return vn_plan_root(p, v) == vn_plan_root(p, sum->in[0]);
}

static vn_status try_another_checkpoint(vn_rearranged *r, vn_error *err)
{
	const vn_comparison *c = r->t->c;
	const vn_tensor     *cand = r->like;
	const vn_entry      *me = vn_recording_entry(c->opened.cand, c->result.point[r->t->x->point].cand);
	vn_status            st = VN_OK;

	for (int i = 0; !st && vn_any_finite(r->cand, r->n) && i < vn_recording_count(c->opened.cand); i++) {
		const vn_entry *e = vn_recording_entry(c->opened.cand, i);
		vn_hypothesis   h = { .recorder_fault = true };
		vn_tensor       t;
		if (e->step != me->step || e->dtype != me->dtype || e->same_as >= 0 || strcmp(e->name, me->name) == 0 ||
		    e == me || vn_shape_count(&e->shape) != r->n || !may_be_taken_for(r, e) || vn_is_wrong_itself(r->t->c, i))
			continue;
		if ((st = vn_entry_tensor(c->opened.cand, i, &t, err)))
			break;
		if (memcmp(t.data, cand->data, (size_t)r->n * vn_dtype_size(t.dtype)) == 0) {
			memcpy(r->a, r->cand, (size_t)r->n * sizeof *r->a);
			memcpy(r->b, r->cand, (size_t)r->n * sizeof *r->b);
			h.finding = comes_later(r, e)   ? VN_RECORDED_LATER
			            : is_parallel(r, e) ? VN_PARALLEL_BLOCK
			                                : VN_RECORDED_BEFORE;
			h.recorder_fault = h.finding != VN_PARALLEL_BLOCK;
			vn_text_add(h.recorded_instead, sizeof h.recorded_instead, "%s", e->name);
			vn_text_clean(h.recorded_instead, sizeof h.recorded_instead);
			st = vn_rearranged_judge(r, &h, err);
		}
		vn_recording_release(c->opened.cand, i);
	}
	return st;
}

vn_status vn_rearrange(vn_explain_trial *t, vn_error *err)
{
	const vn_tensor *c = &t->site->cand;
	const char      *axes = t->site->axes;
	vn_rearranged    r = { t,
		                   vn_shape_count(&c->shape),
		                   vn_all_doubles_of(&t->own),
		                   vn_all_doubles_of(&t->fine),
		                   vn_all_doubles_of(c),
		                   vn_all_doubles_of(c),
		                   vn_all_doubles_of(c),
		                   c };
	vn_status        st = VN_OK;

	if (!r.own || !r.fine || !r.cand || !r.a || !r.b)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for arrangements");
	if (!st)
		st = vn_rearrange_one_value(&r, err);
	if (!st && !vn_answered(t) && !(st = vn_rearrange_numbers(&r, err)) && !(st = try_heads(&r, axes, err)) &&
	    !(st = try_moved_rows(&r, axes, err)) && !(st = try_transposed_axes(&r, err)))
		st = try_another_checkpoint(&r, err);
	free(r.own);
	free(r.fine);
	free(r.cand);
	free(r.a);
	free(r.b);
	return st;
}
