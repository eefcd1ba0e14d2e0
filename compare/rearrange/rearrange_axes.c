/* rearrange_axes.c: see rearranged.h. */
#include "compare/rearrange/rearranged.h"

#include "compare/text/arrangements.h"
#include "libref/base/alloc.h"
#include "libref/base/rounding.h"

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

static void try_axis(vn_rearranged *r, int axis)
{
	const vn_shape *s = &r->like->shape;
	vn_trial        h = { .finding = VN_FINDING_AXIS_REORDERED };
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
	h.applied.result.number = axis == 0 ? 0 : axis == s->rank - 1 ? 1 : 2 + axis;
	if (find_alternation(&x, &h) || list_runs(&x, &h)) {
		arrange(&x, r->a, r->own);
		arrange(&x, r->b, r->fine);
		if (error_of(r, r->a) <= LEAVES * error_of(r, r->own))
			vn_rearranged_judge(r, NULL, &h);
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

void vn_rearrange_axes(vn_rearranged *r)
{
	try_format(r);

	for (int axis = 0; axis < r->like->shape.rank; axis++)
		try_axis(r, axis);
}
