/* align.c: resolves declared differences of layout before tensors are matched: rows that only one
 * file kept, axes in another order. Nothing is guessed from shapes, and every change is a note in
 * the report. */
#include "compare/match/align.h"

#include "capture/view/view.h"
#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_NOTES = 16 };

/* The rows of a step that both sides kept. */
static bool common_rows(const vn_step *a, const vn_step *b, int64_t *first, int64_t *rows)
{
	const int64_t low = a->first_row > b->first_row ? a->first_row : b->first_row;
	const int64_t x = a->first_row + a->rows, y = b->first_row + b->rows, high = x < y ? x : y;
	*first = low;
	*rows = high - low;
	return a->position == b->position && a->tokens == b->tokens && high > low && (a->rows != *rows || b->rows != *rows);
}

static vn_status align_rows(vn_recording *ref, vn_lines *notes, vn_recording *other, const char *who,
                            bool cut_reference, vn_error *err)
{
	const vn_step *step;
	const int      n = vn_recording_steps(ref, &step);
	int64_t        first, rows;
	vn_status      st = VN_OK;
	for (int i = 0; !st && i < n; i++) {
		const vn_step mine = step[i], *found = vn_recording_step(other, mine.number);
		if (!found || !common_rows(&mine, found, &first, &rows))
			continue;
		const vn_step theirs = *found;
		if (!cut_reference && (first != mine.first_row || rows != mine.rows))
			continue;
		if (notes->n < MOST_NOTES)
			vn_lines_add(notes,
			             "step %d: rows %" PRId64 "-%" PRId64 " in the reference, %" PRId64 "-%" PRId64
			             " in the %s: compared on "
			             "%" PRId64 "-%" PRId64,
			             mine.number, mine.first_row, mine.first_row + mine.rows - 1, theirs.first_row,
			             theirs.first_row + theirs.rows - 1, who, first, first + rows - 1);
		if (!cut_reference || !(st = vn_view_rows(ref, mine.number, first, rows, err)))
			st = vn_view_rows(other, mine.number, first, rows, err);
	}
	return st;
}

/* Whether the shapes agree when axis i is taken from axis order[i]. */
static bool fits_order(const vn_entry *r, const vn_entry *d, const int *order)
{
	bool same = r->shape.rank == d->shape.rank;
	for (int i = 0; same && i < r->shape.rank; i++)
		same = r->shape.dim[i] == d->shape.dim[order[i]];
	return same;
}

static bool is_noted(const vn_lines *l, const char *text)
{
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->line[i], text) == 0)
			return true;
	return false;
}

static void align_axes(vn_recording *ref, vn_lines *notes, vn_recording *other, const char *who)
{
	int  order[VN_MAX_RANK];
	char text[200];
	for (int i = 0; i < vn_recording_count(other); i++) {
		const vn_entry *d = vn_recording_entry(other, i);
		const int       there = *d->axes && d->same_as < 0 ? vn_recording_find(ref, d->step, d->name) : -1;
		const vn_entry *r = there >= 0 ? vn_recording_entry(ref, there) : NULL;
		if (!r || strcmp(vn_entry_axes(r), d->axes) == 0 ||
		    !vn_view_order(d->axes, vn_entry_axes(r), d->shape.rank, order) || !fits_order(r, d, order))
			continue;
		snprintf(text, sizeof text, "axes '%s' of the %s are taken as '%s'", d->axes, who, vn_entry_axes(r));
		vn_text_clean(text, sizeof text);
		if (notes->n < MOST_NOTES && !is_noted(notes, text))
			vn_lines_add(notes, "%s", text);
		vn_view_axes(other, i, order);
	}
}

/* Rows of an entry along its token axis; -1: it has none. */
static int64_t rows_of(const vn_entry *e)
{
	const int axis = vn_axes_find(vn_entry_axes(e), "token");
	return axis >= 0 && axis < e->shape.rank ? e->shape.dim[axis] : -1;
}

static int64_t step_rows(const vn_recording *r, int step)
{
	const vn_step *s = vn_recording_step(r, step);
	return s ? s->rows : 0;
}

/* Engines that only need the next token compute the end of the run for the last row alone. Then
 * only that row of the other side is compared. */
static vn_status align_last(vn_recording *ref, vn_lines *notes, vn_recording *other, const char *who,
                            bool cut_reference, vn_error *err)
{
	const char *first[2] = { NULL, NULL };
	int         n[2] = { 0, 0 };
	vn_status   st = VN_OK;
	for (int i = 0; !st && i < vn_recording_count(other); i++) {
		const vn_entry *d = vn_recording_entry(other, i);
		const int       there = d->same_as < 0 ? vn_recording_find(ref, d->step, d->name) : -1;
		if (there < 0 || !vn_entry_last(d))
			continue;
		const int64_t mine = rows_of(vn_recording_entry(ref, there)), theirs = rows_of(d);
		/* When one row of a step was kept, the recording says which row it is. */
		const bool    cut_theirs = mine == 1 && theirs > 1 && step_rows(ref, d->step) > 1;
		const bool    cut_mine = theirs == 1 && mine > 1 && step_rows(other, d->step) > 1 && cut_reference;
		if (!cut_theirs && !cut_mine)
			continue;
		first[cut_mine] = first[cut_mine] ? first[cut_mine] : d->name;
		n[cut_mine]++;
		st = cut_mine ? vn_view_entry_rows(ref, there, mine - 1, 1, err)
		              : vn_view_entry_rows(other, i, theirs - 1, 1, err);
	}
	for (int k = 0; k < 2; k++)
		if (n[k] && notes->n < MOST_NOTES)
			vn_lines_add(
				notes,
				"%d tensor%s of the %s ha%s one row (first: %s), which is taken as the last token and compared with "
				"that row of the %s",
				n[k], n[k] == 1 ? "" : "s", k ? who : "reference", n[k] == 1 ? "s" : "ve", first[k],
				k ? "reference" : who);
	return st;
}

vn_status vn_align(vn_recording *ref, vn_lines *notes, vn_recording *other, const char *who, bool cut_reference,
                   vn_error *err)
{
	vn_status st = align_rows(ref, notes, other, who, cut_reference, err); /* first: shapes are compared axis by axis */
	if (!st && !(st = align_last(ref, notes, other, who, cut_reference, err)))
		align_axes(ref, notes, other, who);
	return st;
}
