/* rearrange.c: see rearrange.h. */
#include "compare/rearrange/rearrange.h"
#include "compare/rearrange/rearranged.h"
#include "compare/text/arrangements.h"
#include "compare/trial/score.h"

#include "libref/base/alloc.h"
#include "libref/base/rounding.h"
#include "libref/base/text.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- along an axis --------------------------------------------------------------------------- */

enum { RUNS = 8, LONGEST = 4096, FEW = 3 };
#define MOST_WORK 4e9 /* products of numbers that a search may take */

/* An axis of a tensor, with the numbers before and after it, and for each index on it the one whose
 * numbers it holds. */
typedef struct axis_map {
	int64_t outer, rows, row;
	int    *from; /* (rows) */
} axis_map;

/* Is every group of `width` indices in the order 0, width / 2, 1, width / 2 + 1... (or back)? */
static bool alternates(const axis_map *x, int64_t width, bool back)
{
	const int64_t half = width / 2;

	for (int64_t i = 0; i < x->rows; i++) {
		const int64_t k = i % width, due = back ? (k < half ? 2 * k : 2 * (k - half) + 1) : k % 2 * half + k / 2;
		if (x->from[i] != i - k + due)
			return false;
	}
	return true;
}

static bool find_alternation(const axis_map *x, vn_trial *h)
{
	for (int64_t width = x->rows; width >= 4; width /= 2)
		for (int back = 0; back < 2 && width % 2 == 0 && x->rows % width == 0; back++)
			if (alternates(x, width, back)) {
				h->applied.result.factor = back ? VN_AXIS_HALVED : VN_AXIS_INTERLEAVED;
				h->applied.result.list[0] = (int)width;
				h->applied.result.n = 1;
				return true;
			}
	return false;
}

/* Lists the runs of indices that are not their own. Returns how many indices these are. */
static int64_t list_runs(const axis_map *x, vn_trial *h)
{
	int    *list = h->applied.result.list, *n = &h->applied.result.n;
	int64_t moved = 0;

	for (int64_t i = 0; i < x->rows;) {
		int64_t end = i + 1;
		if (x->from[i] == i) {
			i++;
			continue;
		}
		const int step = end < x->rows ? x->from[end] - x->from[i] : 1;
		while (end < x->rows && x->from[end] != end && x->from[end] - x->from[end - 1] == step && abs(step) < 2)
			end++;
		moved += end - i;
		if (*n == 4 * RUNS)
			h->applied.result.more = true;
		else
			for (int k = 0; k < 4; k++)
				list[(*n)++] = (int)(k == 0 ? i : k == 1 ? end - 1 : k == 2 ? x->from[i] : step);
		i = end;
	}
	return moved;
}

/* An index with the numbers of its own one, which another has too, is in its place. */
static void keep_equal(const axis_map *x, const double *own)
{
	const size_t bytes = (size_t)x->row * sizeof *own;

	for (int64_t i = 0; i < x->rows; i++) {
		bool same = x->from[i] != i;
		for (int64_t o = 0; same && o < x->outer; o++)
			same = memcmp(own + (o * x->rows + i) * x->row, own + (o * x->rows + x->from[i]) * x->row, bytes) == 0;
		if (same)
			x->from[i] = (int)i;
	}
}

static void arrange(const axis_map *x, double *to, const double *of)
{
	const size_t bytes = (size_t)x->row * sizeof *to;

	for (int64_t o = 0; o < x->outer; o++)
		for (int64_t i = 0; i < x->rows; i++)
			memcpy(to + (o * x->rows + i) * x->row, of + (o * x->rows + x->from[i]) * x->row, bytes);
}

/* The squared error of numbers against the candidate's; infinite ones are left out. */
static double error_of(const vn_rearranged *r, const double *x)
{
	double sum = 0;

	for (int64_t i = 0; i < r->n; i++)
		if (isfinite(r->cand[i]) && isfinite(x[i]))
			sum += (r->cand[i] - x[i]) * (r->cand[i] - x[i]);
	return sum;
}

/* Of the error: an order that leaves more is not one. */
#define LEAVES 0.25

static void try_order(vn_rearranged *r, int axis, const axis_map *x)
{
	vn_trial h = { .finding = VN_FINDING_AXIS_REORDERED };

	h.applied.result.number = axis == 0 ? 0 : axis == r->like->shape.rank - 1 ? 1 : 2 + axis;
	if (!find_alternation(x, &h) && !list_runs(x, &h))
		return;
	arrange(x, r->a, r->own);
	arrange(x, r->b, r->fine);
	if (error_of(r, r->a) <= LEAVES * error_of(r, r->own))
		vn_rearranged_judge(r, NULL, &h);
}

static void try_axis(vn_rearranged *r, int axis)
{
	const vn_shape *s = &r->like->shape;
	axis_map        x = { .outer = 1, .rows = s->dim[axis] };

	for (int i = 0; i < axis; i++)
		x.outer *= s->dim[i];
	x.row = r->n / x.outer / x.rows;
	/* of few numbers each, some fit by chance */
	if (x.rows < 2 || x.rows > LONGEST || x.outer * x.row < FEW || (double)r->n * (double)x.rows > MOST_WORK)
		return;
	x.from = vn_alloc((size_t)x.rows, sizeof *x.from);
	vn_nearest_rows(r->cand, r->own, x.outer, x.rows, x.row, x.from);
	keep_equal(&x, r->own);
	try_order(r, axis, &x);
	free(x.from);
}

/* Columns of a product that are a few places late or early, as rows of its matrix are if it is read
 * from the wrong row on. They are at least LEAST, so that even those of one token fit none of the
 * few places by chance. */
static void try_rolled_columns(vn_rearranged *r)
{
	enum { FARTHEST = 8, LEAST = 3 * FARTHEST };
	axis_map x = { .outer = r->like->shape.dim[0], .row = 1 };

	if (r->like->shape.rank < 2)
		return;
	x.rows = r->n / x.outer;
	if (x.rows < LEAST || x.rows > LONGEST * LONGEST)
		return;
	x.from = vn_alloc((size_t)x.rows, sizeof *x.from);
	for (int by = -FARTHEST; by <= FARTHEST && !vn_case_answered(r->t); by++) {
		double left = 0, error = 0; /* of the last row */
		for (int64_t i = 0; i < x.rows; i++) {
			const int64_t at = r->n - x.rows;
			x.from[i] = (int)((i - by + x.rows) % x.rows);
			left += pow(r->cand[at + i] - r->own[at + x.from[i]], 2);
			error += pow(r->cand[at + i] - r->own[at + i], 2);
		}
		if (by && left <= LEAVES * error)
			try_order(r, r->like->shape.rank - 1, &x);
	}
	free(x.from);
}

/* ---- rounded --------------------------------------------------------------------------------- */

static bool holds_only(const vn_rearranged *r, vn_rounding_format format)
{
	bool some = false;

	for (int64_t i = 0; i < r->n; i++) {
		if (isfinite(r->cand[i]) && vn_in_format(r->cand[i], format) != r->cand[i])
			return false;
		some = some || r->cand[i] != r->own[i];
	}
	return some;
}

/* The coarsest format that all numbers are in. */
static void try_format(vn_rearranged *r)
{
	static const struct {
		vn_rounding_format of;
		int                digits;
	} formats[] = { { VN_FORMAT_E5M2, 2 }, { VN_FORMAT_E4M3, 3 }, { VN_FORMAT_BF16, 7 }, { VN_FORMAT_F16, 10 } };

	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		vn_trial h = { .finding = VN_FINDING_RESULT_ROUNDED, .applied.result.number = (double)formats[i].of };
		if (formats[i].digits >= vn_dtype_digits(r->t->format) || !holds_only(r, formats[i].of))
			continue;
		for (int64_t k = 0; k < r->n; k++) {
			r->a[k] = vn_in_format(r->own[k], formats[i].of);
			r->b[k] = vn_in_format(r->fine[k], formats[i].of);
		}
		vn_rearranged_judge(r, NULL, &h);
		return;
	}
}

/* Tries for each axis that its indices hold what others should, and that the result was only
 * rounded to a narrower format. The trial's number is the axis: 0 rows, 1 columns (the last axis),
 * 2 + axis of those between; its list has up to 8 runs of first, last, from, step. */
static void rearrange_axes(vn_rearranged *r)
{
	try_format(r);

	for (int axis = 0; axis < r->like->shape.rank; axis++)
		try_axis(r, axis);
}

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
		rearrange_axes(&r);
	vn_rearranged_close(&r);
}

void vn_rearrange_rolled(vn_case *t)
{
	vn_rearranged r;

	if (!t->site->plan || t->site->plan->node[vn_case_node(t)].op != VN_OP_LINEAR)
		return;
	vn_rearranged_open(&r, t);
	try_rolled_columns(&r);
	vn_rearranged_close(&r);
}
