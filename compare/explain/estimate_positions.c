/* estimate_positions.c: see estimate_positions.h. */
#include "compare/explain/estimate_positions.h"
#include "compare/explain/fit.h"
#include "compare/explain/score.h"

#include <math.h>
#include <stdlib.h>

enum { ASKED = 8 }; /* the most tokens that are compared with the rows of the table */

/* The squared error of the candidate's token `at` if its position is `by` rows further on. own:
 * with the unmodified table. */
static double row_off_by(const vn_tensor *own, const vn_tensor *c, const vn_tensor *table, int64_t at, int64_t position,
                         int64_t by, double *room)
{
	const int64_t    D = table->shape.dim[1];
	const int64_t    from[4] = { at * D, at * D, position * D, (position + by) * D };
	const vn_tensor *of[4] = { own, c, table, table };
	double           sum = 0;

	for (int i = 0; i < 4; i++)
		vn_to_f64(room + i * D, (const char *)of[i]->data + (size_t)from[i] * vn_dtype_size(of[i]->dtype), of[i]->dtype,
		          (size_t)D);
	for (int64_t d = 0; d < D; d++) {
		const double e = room[d] - room[2 * D + d] + room[3 * D + d] - room[D + d];
		sum += e * e;
	}
	return sum;
}

/* The shift that leaves least. 0: none does. */
static int64_t shift_of(const vn_explain_trial *t, const vn_tensor *table, double *room)
{
	const vn_tensor *c = &t->site->cand;
	const int64_t    rows = c->shape.dim[0], C = table->shape.dim[0], first = t->site->first,
				  some = rows < ASKED ? rows : ASKED;
	double  least = (double)INFINITY;
	int64_t best = 0;

	for (int64_t by = -first - rows; by < C - first; by++) {
		double sum = 0;
		for (int64_t i = 0; i < some; i++) {
			const int64_t at = some < 2 ? 0 : (rows - 1) * i / (some - 1), position = first + at;
			/* A row outside the table stays as it is, as where the shift is applied. */
			sum += row_off_by(&t->own, c, table, at, position, position + by >= 0 && position + by < C ? by : 0, room);
		}
		if (sum < least) {
			least = sum;
			best = by;
		}
	}
	return best;
}

vn_status vn_estimate_positions(vn_explain_trial *t, const vn_hypothesis *at, vn_error *err)
{
	const vn_plan   *p = t->site->plan;
	const vn_tensor *c = &t->site->cand, *table = &t->site->weights[p->node[at->node].w[0]];
	const int64_t    past = vn_recording_step(t->c->opened.cand, t->c->result.point[t->x->point].step)->position;
	vn_hypothesis    h = { .finding = VN_TABLE_OFFSET, .node = at->node, .change.kind = VN_BY_ROWS }, later = h;
	vn_status        st = VN_OK;

	/* The checkpoint must be a row of the table, alone or added to something. */
	if (c->shape.rank != 2 || table->shape.rank != 2 || c->shape.dim[1] != table->shape.dim[1] ||
	    t->x->unmodified.local.bad)
		return VN_OK;
	double *room = malloc((size_t)(4 * table->shape.dim[1]) * sizeof *room);
	if (!room)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a row of positions");
	const int64_t by = shift_of(t, table, room);
	free(room);
	h.change.rows = later.change.rows = (int)by;
	if (by == 0 || (st = vn_fit_whole(t, &h, by, -table->shape.dim[0], table->shape.dim[0], err)) || past == 0)
		return st;
	later.finding = VN_TABLE_OFFSET_LATER;
	later.change.later = true;
	return vn_try(t, &later, err);
}
