/* explain_learned.c: which row of a table of learned positions each token was given. */
#include "compare/explain/explain_inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ASKED = 8 }; /* tokens that are held against the rows of the table */

/* Squares of what is left of token `at` of the candidate where its position is `by` rows further. own: of the sound table. */
static double off_by(const vn_tensor *own, const vn_tensor *c, const vn_tensor *table, int64_t at, int64_t position, int64_t by, double *room)
{
	const int64_t D = table->shape.dim[1];
	const int64_t from[4] = { at * D, at * D, position * D, (position + by) * D };
	const vn_tensor *of[4] = { own, c, table, table };
	double sum = 0;

	for (int i = 0; i < 4; i++)
		vn_to_f64(room + i * D, (const char *)of[i]->data + (size_t)from[i] * vn_dtype_size(of[i]->dtype), of[i]->dtype, (size_t)D);
	for (int64_t d = 0; d < D; d++) {
		const double e = room[d] - room[2 * D + d] + room[3 * D + d] - room[D + d];
		sum += e * e;
	}
	return sum;
}

/* The shift that leaves least; 0: none does. */
static int64_t shift_of(const vn_trial *t, const vn_tensor *own, const vn_tensor *table, double *room)
{
	const vn_tensor *c = vn_probe_candidate(t->probe);
	const int64_t    rows = c->shape.dim[0], C = table->shape.dim[0], first = vn_probe_first(t->probe), some = rows < ASKED ? rows : ASKED;
	double           least = (double)INFINITY;
	int64_t          best = 0;

	for (int64_t by = -first - rows; by < C - first; by++) {
		double sum = 0;
		for (int64_t i = 0; i < some; i++) {
			const int64_t at = some < 2 ? 0 : (rows - 1) * i / (some - 1), position = first + at;
			/* A row that is not there is the table's own, as where the shift is made. */
			sum += off_by(own, c, table, at, position, position + by >= 0 && position + by < C ? by : 0, room);
		}
		if (sum < least) {
			least = sum;
			best = by;
		}
	}
	return best;
}

vn_status vn_fit_positions(vn_trial *t, int node, vn_error *err)
{
	const vn_plan   *p = vn_probe_plan(t->probe);
	const vn_tensor *c = vn_probe_candidate(t->probe), *table = &vn_probe_weights(t->probe)[p->node[node].w[0]];
	const int64_t    past = vn_recording_step(t->c->cand, t->c->point[t->x->point].step)->position;
	vn_hypothesis    h = { .id = "R15", .node = node }, later = { .id = "R15", .node = node };
	vn_tensor        own;
	vn_status        st;

	/* A row of it is to be what the checkpoint has, with or without what is added. */
	if (c->shape.rank != 2 || table->shape.rank != 2 || c->shape.dim[1] != table->shape.dim[1] || t->x->sound.local.bad)
		return VN_OK;
	double *room = malloc((size_t)(4 * table->shape.dim[1]) * sizeof *room);
	if (!room)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a row of positions");
	if ((st = vn_probe_run(t->probe, p, vn_probe_weights(t->probe), VN_PROBE_OWN, &own, err))) {
		free(room);
		return st == VN_ERR_UNSUPPORTED ? VN_OK : st;
	}
	const int64_t by = shift_of(t, &own, table, room);
	free((void *)(uintptr_t)own.data);
	free(room);
	h.made.rows = (int)by;
	if (by == 0 || (st = vn_try_whole(t, &h, by, -table->shape.dim[0], table->shape.dim[0], "learned positions count from %s", err)) || past == 0)
		return st;
	later.made.rows = (int)by;
	later.made.later = true;
	vn_hypothesis_say(&later, "learned positions behind the first call are %lld too %s", (long long)llabs(by), by > 0 ? "high" : "low");
	return vn_try_made(t, &later, err);
}
