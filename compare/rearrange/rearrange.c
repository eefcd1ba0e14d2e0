/* rearrange.c: see rearrange.h. */
#include "compare/rearrange/rearrange.h"
#include "compare/rearrange/rearranged.h"
#include "compare/trial/score.h"
#include "compare/text/arrangements.h"

#include "libref/base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- order ----------------------------------------------------------------------------------- */

/* There are `outer` blocks of `rows` rows. */
static void arrange_rows(vn_rearranged *r, int64_t outer, int64_t rows, const vn_arrange *m)
{
	const size_t row = (size_t)(r->n / outer / rows) * sizeof *r->a;

	vn_arrange_bytes(r->a, r->own, m, (size_t)outer, (size_t)rows, row);
	vn_arrange_bytes(r->b, r->fine, m, (size_t)outer, (size_t)rows, row);
}

static void try_heads(vn_rearranged *r, const char *axes)
{
	_Static_assert((int)VN_HEADS_ORDERED <= (int)VN_LIST_MOST, "a trial holds the order of all heads");
	vn_trial        h = { .finding = VN_FINDING_HEADS_REORDERED };
	const vn_shape *s = &r->like->shape;
	const int       axis = vn_head_axis(VN_ARRANGED_RESULT, axes, s);
	int            *from = h.applied.result.list;
	int64_t         outer = 1;
	bool            moved = false;

	if (axis < 0)
		return;
	for (int i = 0; i < axis; i++)
		outer *= s->dim[i];
	const int64_t H = s->dim[axis];
	vn_nearest_rows(r->cand, r->own, outer, H, r->n / outer / H, from);
	for (int64_t i = 0; i < H; i++)
		moved = moved || from[i] != i;
	if (!moved)
		return;
	h.applied.result.n = (int)H;
	arrange_rows(r, outer, H, &(vn_arrange) { VN_ARRANGE_LISTED, .a = H, .list = from });
	vn_rearranged_judge(r, &r->t->reference_variants, &h);
}

/* If the run continued with these numbers, the recording is not at fault. */
static vn_finding finding_of_axes(const vn_rearranged *r, const int *order, int rank)
{
	const vn_plan *plan = r->t->site->plan;
	const bool     joined = plan && plan->node[vn_case_node(r->t)].op == VN_OP_ATTENTION;

	if (r->t->consumed != VN_CONSUMED_AS_RECORDED)
		return VN_FINDING_AXES_RECORDED;
	if (joined && order[0] == 0 && order[1] == 2)
		return VN_FINDING_AXES_OF_HEADS;
	return joined && rank == 3 && order[0] == 1 && order[1] == 0 ? VN_FINDING_AXES_BEFORE_TOKENS : VN_FINDING_AXES;
}

static void arrange_axes(vn_rearranged *r, const int *order)
{
	const vn_permutation axes = vn_permutation_of(&r->like->shape, order);

	vn_permute(r->a, r->own, &axes);
	vn_permute(r->b, r->fine, &axes);
}

static void try_arrangement(vn_rearranged *r, const vn_arrangement *a)
{
	const int rank = r->like->shape.rank;
	vn_trial  h = { .applied.result.number = a->number };

	switch (a->kind) {
	case VN_ARRANGED_AXES:
		h.finding = finding_of_axes(r, a->order, rank);
		h.recorder_fault = r->t->consumed == VN_CONSUMED_OTHERS;
		h.applied.result.n = rank;
		memcpy(h.applied.result.list, a->order, (size_t)rank * sizeof *a->order);
		arrange_axes(r, a->order);
		break;
	case VN_ARRANGED_COLUMNS: assert(false); break; /* listed for recordings only */
	case VN_ARRANGED_MOVED:
	case VN_ARRANGED_REVERSED: /* the axis of tokens is the first one */
		h.finding = a->kind == VN_ARRANGED_MOVED ? VN_FINDING_TOKENS_MOVED : VN_FINDING_TOKENS_REVERSED;
		arrange_rows(r, 1, r->like->shape.dim[a->axis], &a->along);
		break;
	}
	vn_rearranged_judge(r, &r->t->reference_variants, &h);
}

static void try_arrangements(vn_rearranged *r, const char *axes)
{
	/* Attention scores have their heads first. They are the largest results, and each try measures
	 * all of a result, so their tokens are not moved. */
	const int      token = vn_axes_find(axes, "token") == 0 ? 0 : -1;
	vn_arrangement list[VN_ARRANGEMENTS];
	const int      n = vn_arrangements(VN_ARRANGED_RESULT, &r->like->shape, token, list);

	for (int i = 0; i < n; i++)
		try_arrangement(r, &list[i]);
}

/* ---- another checkpoint ---------------------------------------------------------------------- */

/* Without a plan: was it made before this checkpoint? What comes later may be a copy of it. */
static bool came_before(const vn_case *t, const vn_entry *e)
{
	const vn_checkpoint *me = &t->result->checkpoints.of[t->x->checkpoint];
	const vn_run_plan   *p = vn_recording_run_plan(t->opened->cand);
	const int            mine = p ? vn_run_plan_maker(p, me->step, me->name) : -1;
	const int            its = p ? vn_run_plan_maker(p, e->step, e->name) : -1;

	return mine >= 0 && its < mine;
}

/* Without a plan: does the operation read it? */
static bool is_read(const vn_case *t, const vn_entry *e)
{
	const vn_checkpoint *me = &t->result->checkpoints.of[t->x->checkpoint];
	const vn_run_plan   *p = vn_recording_run_plan(t->opened->cand);
	const int            mine = vn_run_plan_maker(p, me->step, me->name), its = vn_run_plan_value(p, e->step, e->name);

	for (int i = 0; i < p->node[mine].n_in; i++)
		if (p->in[p->node[mine].first_in + i] == its)
			return true;
	return false;
}

/* Equal bits with another checkpoint point to the capture if the run continued with other
 * numbers. If that is unknown, a checkpoint that copies this one proves nothing: a cache, or a
 * rotation by zero. */
static bool may_be_taken_for(const vn_rearranged *r, const vn_entry *e)
{
	const vn_plan *p = r->t->site->plan;
	if (!p)
		return came_before(r->t, e);
	const int v = vn_plan_find(p, e->name),
			  me = vn_plan_find(p, r->t->result->checkpoints.of[r->t->x->checkpoint].name);
	const int root = v < 0 ? -1 : vn_plan_root(p, v), mine = vn_plan_root(p, me);

	if (r->t->consumed == VN_CONSUMED_AS_RECORDED || root == mine)
		return false;
	/* computed from it in the same layer; later layers mix in other numbers */
	return root < 0 || r->t->consumed == VN_CONSUMED_OTHERS
	           ? root < 0 || p->value[root].state < 0
	           : p->value[root].layer != p->value[mine].layer || !vn_rearrange_is_made_of(p, root, mine);
}

/* Was it computed after this checkpoint? Then it overwrote this buffer, and is not a stale
 * value. */
static bool comes_later(const vn_rearranged *r, const vn_entry *e)
{
	const vn_plan *p = r->t->site->plan;
	const int      v = vn_plan_find(p, e->name);
	return v >= 0 && p->value[vn_plan_root(p, v)].node > vn_case_node(r->t);
}

/* The MLP is right on inputs with which the sum after it is wrong, and these are the layer's
 * inputs: the block is parallel. What was recorded as the residual is what the norm read. */
static bool is_parallel(const vn_rearranged *r, const vn_entry *e)
{
	const vn_plan *p = r->t->site->plan;
	const int      v = vn_plan_find(p, e->name), mine = r->t->site->target;

	if (v < 0 || p->value[mine].point != VN_POINT_ATTN_RESIDUAL || r->t->consumed != VN_CONSUMED_OTHERS ||
	    !vn_case_consumed_as_recorded(r->t))
		return false;
	const vn_node *sum = &p->node[p->value[mine].node];
	return vn_plan_root(p, v) == vn_plan_root(p, sum->in[0]);
}

/* Only equal bits with a checkpoint of the candidate show a wrong recording. layout_match.c reports
 * a checkpoint of the reference that is near. */
static void try_another_checkpoint(vn_rearranged *r)
{
	vn_recording    *own = r->t->opened->cand;
	const vn_tensor *cand = r->like;

	for (int i = 0; vn_rearrange_any_finite(r->cand, r->n) && i < vn_recording_count(own); i++) {
		const vn_entry *e = vn_recording_entry(own, i);
		vn_trial        h = { .recorder_fault = true };
		vn_tensor       t;
		if (!vn_rearrange_could_hold(r, i) || !may_be_taken_for(r, e))
			continue;
		if (!vn_case_made(r->t, vn_entry_tensor(own, i, &t, vn_case_error(r->t))))
			break;
		if (memcmp(t.data, cand->data, (size_t)r->n * vn_dtype_size(t.dtype)) == 0) {
			memcpy(r->a, r->cand, (size_t)r->n * sizeof *r->a);
			memcpy(r->b, r->cand, (size_t)r->n * sizeof *r->b);
			h.finding = !r->t->site->plan   ? (is_read(r->t, e) ? VN_FINDING_GIVEN_THROUGH : VN_FINDING_OTHERS_NUMBERS)
			            : comes_later(r, e) ? VN_FINDING_RECORDED_LATER
			            : is_parallel(r, e) ? VN_FINDING_PARALLEL_BLOCK
			                                : VN_FINDING_RECORDED_BEFORE;
			h.recorder_fault = h.finding != VN_FINDING_PARALLEL_BLOCK && r->t->site->plan;
			vn_text_add(h.recorded_instead, sizeof h.recorded_instead, "%s", e->name);
			vn_text_clean(h.recorded_instead, sizeof h.recorded_instead);
			vn_rearranged_judge(r, NULL, &h);
		}
		vn_recording_release(own, i);
	}
}

/* The first column of the wider tensor whose columns are the checkpoint's; -1: its first numbers
 * are; -2: neither. The tensors have `rows` rows. */
static int64_t find_columns(const char *wide, int64_t width, const char *is, int64_t own, int64_t rows, size_t each)
{
	for (int64_t first = 0; first + own <= width; first++) {
		int64_t t = 0;
		while (t < rows && memcmp(wide + (size_t)(t * width + first) * each, is + (size_t)(t * own) * each,
		                          (size_t)own * each) == 0)
			t++;
		if (t == rows)
			return first;
	}
	return memcmp(wide, is, (size_t)(rows * own) * each) == 0 ? -1 : -2;
}

/* Equal bits with columns of a wider checkpoint, or with its first numbers, that the run did not
 * continue with. */
static void try_part_of_another(vn_rearranged *r)
{
	vn_recording   *cand = r->t->opened->cand;
	const vn_entry *me = vn_recording_entry(cand, r->t->result->checkpoints.of[r->t->x->checkpoint].cand);
	const int64_t   rows = r->like->shape.dim[0], own = r->n / rows;

	if (own < 2 || rows < 2 || vn_axes_find(r->t->site->axes, "token") != 0 || !vn_rearrange_any_finite(r->cand, r->n))
		return;
	for (int i = 0; i < vn_recording_count(cand) && !vn_case_answered(r->t); i++) {
		const vn_entry *e = vn_recording_entry(cand, i);
		const int64_t   all = vn_shape_count(&e->shape);
		vn_trial        h = { .finding = VN_FINDING_RECORDED_PART, .recorder_fault = true };
		vn_tensor       t;
		if (e == me || e->step != me->step || e->dtype != me->dtype || e->same_as >= 0 || all <= r->n || all % rows ||
		    e->shape.dim[0] != rows || vn_rearrange_is_wrong_itself(r->t->result, i) || !may_be_taken_for(r, e))
			continue;
		if (!vn_case_made(r->t, vn_entry_tensor(cand, i, &t, vn_case_error(r->t))))
			break;
		const int64_t first = find_columns(t.data, all / rows, r->like->data, own, rows, vn_dtype_size(t.dtype));
		vn_recording_release(cand, i);
		if (first < -1)
			continue;
		memcpy(r->a, r->cand, (size_t)r->n * sizeof *r->a);
		memcpy(r->b, r->cand, (size_t)r->n * sizeof *r->b);
		h.applied.result.number = (double)first;
		h.applied.result.n = 1;
		h.applied.result.list[0] = (int)own;
		vn_text_add(h.recorded_instead, sizeof h.recorded_instead, "%s", e->name);
		vn_text_clean(h.recorded_instead, sizeof h.recorded_instead);
		vn_rearranged_judge(r, NULL, &h);
	}
}

void vn_rearrange(vn_case *t)
{
	const char   *axes = t->site->axes;
	vn_rearranged r;

	vn_rearranged_open(&r, t);
	vn_rearrange_one_value(&r);
	if (!vn_case_answered(t)) {
		vn_rearrange_numbers(&r);
		try_heads(&r, axes);
		try_arrangements(&r, axes);
		try_another_checkpoint(&r);
	}
	if (!vn_case_answered(t))
		try_part_of_another(&r);
	if (!vn_case_answered(t))
		vn_rearrange_leading(&r);
	if (!t->site->plan)
		vn_rearrange_axes(&r);
	vn_rearranged_close(&r);
}
