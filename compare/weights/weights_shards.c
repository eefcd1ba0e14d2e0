/* weights_shards.c: finds the order in which the shards of several ranks were joined: blocks of
 * rows, or of columns. */
#include "compare/weights/weights_internal.h"
#include "libref/base/text.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 8 /* ranks */, LISTED = 4 /* the most shards tried in every order without both sides' numbers */ };

/* Writes "its 4 shards (columns) in the order 2, 0, 3, 1". at: the reference's block at each
 * place. */
static bool say_order(vn_weight_difference *d, int axis, const int at[MOST], int ranks)
{
	char text[MOST * 4] = "";

	for (int i = 0; i < ranks; i++)
		vn_text_add(text, sizeof text, "%s%d", i ? ", " : "", at[i]);
	return vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(SHARDS_LISTED), ranks, axis ? "columns" : "rows", text);
}

/* at: as above, of the candidate; from 1 has it made the other way round. */
static bool is_order(const vn_weight_trial *t, int from, const vn_weight_numbers *m, int axis, const int at[MOST],
                     int ranks, vn_weight_difference *d)
{
	int                   back[MOST];
	const vn_weight_order o = { .axis = axis ? VN_WEIGHT_COLUMNS : VN_WEIGHT_ROWS,
		                        .rule = { VN_ARRANGE_LISTED, .a = ranks, .list = from ? back : at } };

	for (int i = 0; i < ranks; i++)
		back[at[i]] = i;
	return vn_weight_has_order(t, !from, m, &o, &vn_weight_unchanged, 0) && say_order(d, axis, at, ranks);
}

/* Reads the order off the first row (axis 1), or the first number of each row, of both sides. */
static bool match_blocks(const vn_tensor *const both[2], int axis, int64_t n, int64_t cols, int ranks, int at[MOST])
{
	const size_t         size = vn_dtype_size(both[0]->dtype), one = axis ? size : (size_t)cols * size;
	const size_t         block = (size_t)(n / ranks) * one;
	const unsigned char *ref = both[0]->data, *cand = both[1]->data;
	unsigned             used = 0;

	for (int i = 0; i < ranks; i++) {
		at[i] = -1;
		for (int j = 0; j < ranks && at[i] < 0; j++)
			if (!(used >> j & 1) && memcmp(cand + (size_t)i * block, ref + (size_t)j * block, block) == 0)
				at[i] = j;
		if (at[i] < 0)
			return false;
		used |= 1u << at[i];
	}
	return true;
}

static bool is_in_place(const int at[MOST], int ranks)
{
	int i = 0;
	while (i < ranks && at[i] == i)
		i++;
	return i == ranks;
}

/* The next order of the list, as numbers with one digit for each block; false after the last. */
static bool next_order(int at[MOST], int n)
{
	int i = n - 1, j = n - 1, x;

	while (i > 0 && at[i - 1] > at[i])
		i--;
	if (i <= 0)
		return false;
	while (at[j] < at[i - 1])
		j--;
	x = at[i - 1], at[i - 1] = at[j], at[j] = x;
	for (j = n - 1; i < j; i++, j--)
		x = at[i], at[i] = at[j], at[j] = x;
	return true;
}

static bool by_list(const vn_weight_trial *t, int from, const vn_weight_numbers *m, int axis, int ranks,
                    vn_weight_difference *d)
{
	int at[MOST] = { 0, 1, 2, 3 };

	while (next_order(at, ranks))
		if (is_order(t, from, m, axis, at, ranks, d))
			return true;
	return false;
}

bool vn_weight_by_shards(const vn_weight_trial *t, int from, const vn_weight_numbers *m, vn_weight_difference *d)
{
	const vn_weight_row *a = t->row[0], *b = t->row[1];
	const bool           both = t->numbers[0] && t->numbers[1];
	int                  at[MOST];

	if (a->shape.rank != 2 || !vn_shape_equal(&a->shape, &b->shape) || a->dtype != b->dtype ||
	    vn_dtype_block(a->dtype) > 1)
		return false;
	for (int axis = 0; axis < 2; axis++)
		for (int ranks = 2; ranks <= (both ? MOST : LISTED); ranks++) {
			const int64_t n = a->shape.dim[axis];
			if (n % ranks || n / ranks < 2)
				continue;
			if (both ? match_blocks(t->numbers, axis, n, m->cols, ranks, at) && !is_in_place(at, ranks) &&
			               is_order(t, from, m, axis, at, ranks, d)
			         : by_list(t, from, m, axis, ranks, d))
				return true;
		}
	return false;
}
