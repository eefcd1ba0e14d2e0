/* draw_choices.c: see draw_choices.h. */
#include "compare/replay/draw_choices.h"

#include "libref/base/alloc.h"
#include "libref/exec/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Scores nearer to each other than this many of their errors (root of the mean square) may change
 * places: a difference of two is beyond 4.2 of its own errors once in 30,000 times. */
#define REACH 6.0

/* A value of the plan, n numbers in rows: as an engine has them, and as doubles. */
typedef struct drawn_value {
	int      value;
	int64_t  columns, n;
	vn_dtype dtype;
	void    *raw;
	double  *x;
} drawn_value;

static drawn_value make_value(const vn_draw_set *d, const vn_plan *plan, int value, int64_t rows, int64_t columns)
{
	const size_t n = (size_t)(rows * columns);

	return (drawn_value) { .value = value,
		                   .columns = columns,
		                   .n = rows * columns,
		                   .dtype = vn_policy_dtype(d->fine->policy, vn_value_wide(plan, value)),
		                   .raw = vn_alloc(n, sizeof(double)),
		                   .x = vn_alloc(n, sizeof(double)) };
}

static vn_status read_value(const drawn_value *v, const vn_replay_engine *e, vn_error *err)
{
	const vn_tensor t = { v->dtype, { .rank = 1, .dim = { v->n } }, v->raw };
	const vn_status st = vn_ref_ops.read(e->ref, v->value, v->raw, err);

	if (!st)
		vn_tensor_numbers(&t, 0, v->n, v->x);
	return st;
}

static vn_status write_value(const drawn_value *v, const vn_replay_engine *e, vn_error *err)
{
	vn_convert(v->raw, v->dtype, v->x, VN_F64, (size_t)v->n, 1);
	return vn_ref_ops.write(e->ref, v->value, v->raw, err);
}

/* Fills error (rows, zeroed): the mean squared error of a row's scores against B's, over the draws
 * that choose as they must. */
static vn_status measure_errors(const vn_draw_set *d, const drawn_value *scores, double *error, vn_error *err)
{
	const double     n = (double)(scores->columns * ((d->n + 1) / 2));
	vn_status        st = read_value(scores, d->fine, err);
	VN_FREED double *fine = vn_alloc((size_t)scores->n, sizeof *fine);

	memcpy(fine, scores->x, (size_t)scores->n * sizeof *fine);
	for (int i = 0; !st && i < d->n; i += 2) {
		st = read_value(scores, d->of[i], err);
		for (int64_t j = 0; !st && j < scores->n; j++)
			error[j / scores->columns] += (scores->x[j] - fine[j]) * (scores->x[j] - fine[j]) / n;
	}
	return st;
}

/* A little more than one rounding of a score in the format in which it was recorded, since a tie is
 * one rounding wide; VN_N_DTYPES: it was not. */
static double one_rounding(double score, vn_dtype recorded)
{
	const double least = recorded == VN_F16 ? 0x1p-14 : 0x1p-126; /* normal numbers */

	return recorded == VN_N_DTYPES ? 0 : 1.5 * ldexp(1, ilogb(fmax(fabs(score), least)) - vn_dtype_digits(recorded));
}

/* Lets an engine choose once more, with lower scores of the experts that it chose, and puts the
 * scores back. error: (rows) */
static vn_status choose_again(vn_replay_engine *e, const vn_draw_choice *c, const drawn_value *scores,
                              const drawn_value *ids, const double *error, vn_error *err)
{
	VN_FREED double *was = vn_alloc((size_t)scores->n, sizeof *was);
	vn_status        st;

	if ((st = read_value(ids, e, err)) || (st = read_value(scores, e, err)))
		return st;
	memcpy(was, scores->x, (size_t)scores->n * sizeof *was);
	for (int64_t j = 0; j < ids->n; j++) {
		const int64_t row = j / ids->columns;
		double       *score = &scores->x[row * scores->columns + (int64_t)ids->x[j]];
		*score -= fmax(REACH * sqrt(error[row]), one_rounding(*score, c->recorded));
	}
	e->n_out = 0;
	if ((st = write_value(scores, e, err)) || (st = vn_ref_ops.run(e->ref, c->node, c->node + 1, err)))
		return st;
	memcpy(scores->x, was, (size_t)scores->n * sizeof *was);
	return write_value(scores, e, err);
}

vn_status vn_draw_choices(const vn_draw_set *d, const vn_plan *plan, const vn_draw_choice *c, vn_error *err)
{
	const vn_node   *n = &plan->node[c->node];
	drawn_value      scores = make_value(d, plan, n->in[0], c->rows, n->c.top_k.columns);
	drawn_value      ids = make_value(d, plan, n->out[0], c->rows, n->c.top_k.k);
	VN_FREED double *error = vn_alloc_zero((size_t)c->rows, sizeof *error);
	vn_status        st = measure_errors(d, &scores, error, err);

	for (int i = 1; !st && i < d->n; i += 2)
		st = choose_again(d->of[i], c, &scores, &ids, error, err);
	VN_FREE(scores.raw, scores.x, ids.raw, ids.x);
	return st;
}
