/* table.c: reads what a row of the table holds; see table.h. */
#include "compare/table/table.h"
#include "compare/metrics/metrics.h"

#include "capture/recording/numbers.h"

#include "libref/base/alloc.h"

#include <string.h>

/* The candidate's checkpoint; NULL: not compared, or the candidate lacks it. */
static const vn_checkpoint *checkpoint_of(const vn_table *t, int row, int candidate)
{
	const vn_many_cell *x = vn_many_cell_of(t->many, row, candidate);
	return x ? &t->of[candidate]->result.checkpoints.of[x->point] : NULL;
}

/* The row to show: the worst row of the worst candidate. -1: the tensors have no rows. */
static int64_t worst_row(const vn_table *t, int row)
{
	const vn_checkpoint *worst = NULL;
	for (int i = 0; i < t->many->n; i++) {
		const vn_checkpoint *p = checkpoint_of(t, row, i);
		if (!p || p->m.n == 0)
			continue;
		const double x = p->m.value[VN_M_NMSE];
		/* NaN counts as worse than any number. */
		if (!worst || !(x <= worst->m.value[VN_M_NMSE]))
			worst = p;
	}
	return !worst ? 0 : worst->m.worst_nmse_token >= 0 ? worst->m.worst_nmse_token : worst->m.worst_token;
}

/* The row of a tensor that holds a token of the call; -1: the row was not kept. */
static int64_t row_of_token(const vn_recording *r, const vn_entry *e, int64_t token)
{
	const vn_step *step = vn_recording_step(r, e->step);
	const int64_t  row = token - (step ? step->first_row : 0);
	const int      axis = vn_token_axis(vn_entry_axes(e), e->shape.rank);
	return axis < 0 ? 0 : row >= 0 && row < e->shape.dim[axis] ? row : -1;
}

/* The offset of a row in the first head (or in the axes before the token axis), and its length. */
static int64_t begin_of(const vn_entry *e, int64_t row, int64_t *n)
{
	const int axis = vn_token_axis(vn_entry_axes(e), e->shape.rank);
	*n = 1;
	for (int i = axis + 1; i < e->shape.rank; i++)
		*n *= e->shape.dim[i];
	return axis < 0 ? 0 : row * *n;
}

static vn_status read_line(vn_recording *r, int entry, int64_t row, int first, vn_table_line *l, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	vn_numbers     *s = vn_alloc_check(vn_numbers_open(r, entry, err));
	int64_t         length;
	const int64_t   from = begin_of(e, row, &length);
	vn_status       st;

	*l = (vn_table_line) { .there = true, .n = row < 0 ? 0 : length < first ? (int)length : first };
	if (!(st = vn_numbers_stats(s, &l->stats, err)) && l->n && !(st = vn_numbers_read(s, from, (size_t)l->n, err)))
		memcpy(l->value, s->x, (size_t)l->n * sizeof *s->x);
	vn_numbers_close(s);
	vn_recording_forget(r);
	return st;
}

/* The token to show, taken from a side that has the checkpoint. */
static int64_t token_of(const vn_table *t, int row, const vn_recording *r, const vn_entry *e)
{
	const vn_step *step = vn_recording_step(r, e->step);
	if (vn_token_axis(vn_entry_axes(e), e->shape.rank) < 0)
		return -1;
	if (t->token != VN_TABLE_WORST)
		return t->token;
	const int64_t worst = worst_row(t, row);
	return (worst < 0 ? 0 : worst) + (step ? step->first_row : 0);
}

vn_status vn_table_read(const vn_table *t, int row, vn_table_group *g, vn_error *err)
{
	bool begun = false;

	memset(g, 0, sizeof *g);
	g->token = -1;
	for (int i = 0; i < t->many->n; i++) {
		const vn_checkpoint *p = checkpoint_of(t, row, i);
		vn_recording *const  side[] = { p ? t->of[i]->opened.ref : NULL, p ? t->of[i]->opened.cand : NULL };
		const int            entry[] = { p ? p->ref : -1, p ? p->cand : -1 };
		for (int k = 0; k < 2; k++) {
			vn_table_line *l = &g->line[k ? 1 + i : 0];
			if (entry[k] < 0 || l->there)
				continue;
			const vn_entry *e = vn_recording_entry(side[k], entry[k]);
			g->token = begun ? g->token : token_of(t, row, side[k], e);
			begun = true;
			const vn_status st = read_line(side[k], entry[k], row_of_token(side[k], e, g->token), t->first, l, err);
			if (st && p->status != VN_UNREADABLE)
				return st;
			l->there = !st;
		}
	}
	return VN_OK;
}
