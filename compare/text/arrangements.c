/* arrangements.c: see arrangements.h. */
#include "compare/text/arrangements.h"

#include "libref/plan/point.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* What is tried on a recording, or on a result. Axes are the same for both. */
typedef struct tried_range {
	bool    columns;
	int     moved_most;      /* tokens */
	int     ways;            /* of filling tokens from outside */
	int64_t moved_fewest;    /* with fewer tokens, none are moved */
	int64_t reversed_fewest; /* with fewer tokens, their order is not reversed */
	int     head_words;      /* of those in vn_head_axis */
} tried_range;

static const tried_range ranges[] = {
	/* A recording matches if its nmse is small. Tokens from outside are not compared: after a
	 * longer move, too few would decide. */
	[VN_ARRANGED_RECORDING] = { .columns = true,
	                            .moved_most = 2,
	                            .ways = 1,
	                            .moved_fewest = 2,
	                            .reversed_fewest = 2,
	                            .head_words = 4 },
	/* A result must agree to within rounding in every token, those from outside included. Most
	 * tokens must stay inside, or repeated tokens would fit by chance. Replay has found columns in
	 * another order (replay_columns.c). The order of lin_key is not tried yet. */
	[VN_ARRANGED_RESULT] = { .columns = false,
	                         .moved_most = VN_MOVED_MOST,
	                         .ways = 3,
	                         .moved_fewest = 2 * VN_MOVED_MOST + 1,
	                         .reversed_fewest = 3,
	                         .head_words = 3 },
};

/* Does the order move an axis of this shape past another, both longer than 1? */
static bool changes_axes(const vn_shape *s, const int order[VN_ARRANGED_RANK])
{
	int last = -1;

	for (int i = s->rank; i < VN_ARRANGED_RANK; i++)
		if (order[i] != i)
			return false; /* an order of more axes */
	for (int i = 0; i < s->rank; i++) {
		if (s->dim[order[i]] > 1 && order[i] < last)
			return true;
		if (s->dim[order[i]] > 1)
			last = order[i];
	}
	return false;
}

static int list_axes(const vn_shape *s, vn_arrangement *list)
{
	static const int orders[][VN_ARRANGED_RANK] = {
		{ 1, 0, 2, 3 }, { 0, 2, 1, 3 }, { 2, 1, 0, 3 }, { 1, 2, 0, 3 },
		{ 2, 0, 1, 3 }, { 0, 1, 3, 2 }, { 1, 0, 3, 2 }, { 0, 3, 2, 1 },
	};
	int n = 0;

	for (size_t k = 0; s->rank <= VN_ARRANGED_RANK && k < sizeof orders / sizeof *orders; k++)
		if (changes_axes(s, orders[k])) {
			list[n] = (vn_arrangement) { .kind = VN_ARRANGED_AXES };
			memcpy(list[n++].order, orders[k], sizeof orders[k]);
		}
	return n;
}

/* The halves of a rotated pair side by side or half a head apart; gate and up interleaved or one
 * after the other. */
static int list_columns(const vn_shape *s, vn_arrangement *list)
{
	const int64_t width = s->rank ? s->dim[s->rank - 1] : 0;
	int           n = 0;

	for (int order = VN_COLUMNS_PAIRS; width >= 4 && width % 2 == 0 && order < VN_N_COLUMNS; order++) {
		const vn_arrange back = vn_columns_arranged((vn_column_order)order, width);
		list[n++] = (vn_arrangement) {
			.kind = VN_ARRANGED_COLUMNS, .number = order, .axis = s->rank - 1, .along = vn_arrange_back(&back)
		};
	}
	return n;
}

/* Tokens from outside are zeros, those of the other end, or the first or last token again. */
static int list_moved(const tried_range *r, int64_t tokens, int axis, vn_arrangement *list)
{
	static const vn_arrange_rule ways[] = { VN_ARRANGE_MOVED, VN_ARRANGE_ROUND, VN_ARRANGE_SHIFTED };
	int                          n = 0;

	for (int by = -r->moved_most; tokens >= r->moved_fewest && by <= r->moved_most; by++)
		for (int k = 0; by && k < r->ways; k++)
			list[n++] = (vn_arrangement) {
				.kind = VN_ARRANGED_MOVED, .number = by, .axis = axis, .along = { ways[k], .a = by }
			};
	return n;
}

int vn_arrangements(vn_arranged_what what, const vn_shape *s, int token, vn_arrangement list[VN_ARRANGEMENTS])
{
	const tried_range *r = &ranges[what];
	int                n = list_axes(s, list);

	if (r->columns)
		n += list_columns(s, list + n);
	if (token >= 0)
		n += list_moved(r, s->dim[token], token, list + n);
	if (token >= 0 && s->dim[token] >= r->reversed_fewest)
		list[n++] = (vn_arrangement) { .kind = VN_ARRANGED_REVERSED,
			                           .axis = token,
			                           .along = { .rule = VN_ARRANGE_REVERSED } };
	assert(n <= VN_ARRANGEMENTS);
	return n;
}

int vn_head_axis(vn_arranged_what what, const char *axes, const vn_shape *s)
{
	static const char *const words[] = { "head", "kv_head", "lin_head", "lin_key" };

	for (int k = 0; k < ranges[what].head_words; k++) {
		const int axis = vn_axes_find(axes, words[k]);
		if (axis >= 0 && axis < s->rank && s->dim[axis] > 1 && s->dim[axis] <= VN_HEADS_ORDERED)
			return axis;
	}
	return -1;
}

void vn_nearest_rows(const double *x, const double *in, int64_t outer, int64_t rows, int64_t row, int *from)
{
	for (int64_t i = 0; i < rows; i++) {
		from[i] = (int)i;
		double least = (double)INFINITY;
		for (int64_t j = 0; j < rows; j++) {
			double dd = 0;
			for (int64_t o = 0; o < outer && dd < least; o++)
				for (int64_t k = 0; k < row; k++) {
					const double d = x[(o * rows + i) * row + k] - in[(o * rows + j) * row + k];
					dd += d * d;
				}
			if (dd < least) {
				least = dd;
				from[i] = (int)j;
			}
		}
	}
}
