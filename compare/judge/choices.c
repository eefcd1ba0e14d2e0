/* choices.c: see choices.h. */
#include "compare/judge/choices.h"

#include <math.h>

vn_ids_found vn_choices_ids(const vn_tensor *cand, const vn_tensor *expected, const vn_tensor *floor)
{
	vn_ids_found x = { .n = vn_shape_count(&cand->shape) };
	int64_t      turned = 0;

	for (int64_t i = 0; i < x.n; i++) {
		const double e = vn_tensor_number(expected, i);
		x.other += vn_tensor_number(cand, i) != e;
		turned += floor && vn_tensor_number(floor, i) != e;
	}
	if (x.other <= turned) { /* as many as rounding turns */
		x.ties = x.other;
		x.other = 0;
	}
	return x;
}

/* ---- sets ------------------------------------------------------------------------------------ */

static int64_t width_of(const vn_tensor *t)
{
	return t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
}

/* Returns the place of an id among the `width` from `row` on; -1: it is not there. */
static int64_t place_of(const vn_tensor *ids, int64_t row, int64_t width, double id)
{
	for (int64_t i = 0; i < width; i++)
		if (vn_tensor_number(ids, row + i) == id)
			return i;
	return -1;
}

/* One row of a choice. */
typedef struct choice_row {
	const vn_choice *x;
	int64_t          ids, width;   /* first id, how many */
	int64_t          score, table; /* first score; how many, or 0: one beside each id */
} choice_row;

/* The score that a side gives to its id at place i. A table is read where the choice was
 * expected. */
static double score_of(const choice_row *r, int side, int64_t i)
{
	const double id = vn_tensor_number(r->x->ids[side], r->ids + i);

	if (!r->table)
		return vn_tensor_number(r->x->scores[side], r->score + i);
	return id >= 0 && id < (double)r->table ? vn_tensor_number(r->x->scores[1], r->score + (int64_t)id) : (double)NAN;
}

/* The largest score of an id that the other side lacks, behind the one at *place with the score
 * `last`; of equal ones the first. -INFINITY: none. */
static double next_lacking(const choice_row *r, int side, double last, int64_t *place)
{
	const int64_t was = *place;
	double        most = -(double)INFINITY;

	*place = -1;
	for (int64_t i = 0; i < r->width; i++) {
		const double id = vn_tensor_number(r->x->ids[side], r->ids + i), s = score_of(r, side, i);
		if (place_of(r->x->ids[!side], r->ids, r->width, id) < 0 && (s < last || (s == last && i > was)) && s > most) {
			most = s;
			*place = i;
		}
	}
	return most;
}

/* Ids that only one side chose, the best first: each stands for one of the other side, and is a tie
 * if their scores are. */
static void compare_row(const choice_row *r, vn_ids_found *found)
{
	double  last[2] = { INFINITY, INFINITY };
	int64_t lacking = 0, at[2] = { -1, -1 };

	for (int64_t i = 0; i < r->width; i++)
		lacking += place_of(r->x->ids[1], r->ids, r->width, vn_tensor_number(r->x->ids[0], r->ids + i)) < 0;
	for (int64_t k = 0; k < lacking; k++) {
		const double c = next_lacking(r, 0, last[0], &at[0]), e = next_lacking(r, 1, last[1], &at[1]);
		const bool   tie = at[0] >= 0 && at[1] >= 0 && fabs(c - e) <= r->x->margin;
		found->ties += tie;
		found->other += !tie;
		last[0] = c;
		last[1] = e;
	}
}

vn_ids_found vn_choices_sets(const vn_choice *x)
{
	const int64_t n = vn_shape_count(&x->ids[1]->shape), width = width_of(x->ids[1]), rows = width ? n / width : 0;
	const int64_t scores = vn_shape_count(&x->scores[1]->shape);
	const bool    beside = vn_shape_equal(&x->scores[1]->shape, &x->ids[1]->shape);
	const int64_t table = beside ? 0 : width_of(x->scores[1]);
	vn_ids_found  found = { 0 };

	if (!beside && (table == 0 || scores != rows * table || vn_shape_count(&x->scores[0]->shape) != scores))
		return found;
	found.n = n;
	for (int64_t i = 0; i < rows; i++) {
		const choice_row r = { x, i * width, width, i * (beside ? width : table), table };
		compare_row(&r, &found);
	}
	return found;
}

void vn_choices_pair(const vn_tensor *of, const vn_tensor *ids, const vn_tensor *expected_of,
                     const vn_tensor *expected_ids, double *to)
{
	const int64_t n = vn_shape_count(&of->shape), width = width_of(expected_ids);

	for (int64_t i = 0; i < n; i++) {
		const int64_t row = i - i % width, at = place_of(ids, row, width, vn_tensor_number(expected_ids, i));
		to[i] = at < 0 ? vn_tensor_number(expected_of, i) : vn_tensor_number(of, row + at);
	}
}
