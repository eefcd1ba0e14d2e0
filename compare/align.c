/* align.c: what both files declare differently and mean alike, before tensors are
 * matched: rows that only one of them kept, axes in another order. Nothing is
 * guessed from shapes, and every step taken is a note in the report. */
#include "compare/compare.h"

#include "capture/view.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_NOTES = 16 };

/* The rows of a step that both kept. */
static bool common_rows(const vn_step *a, const vn_step *b, int64_t *first, int64_t *rows)
{
	const int64_t low = a->first_row > b->first_row ? a->first_row : b->first_row;
	const int64_t x = a->first_row + a->rows, y = b->first_row + b->rows, high = x < y ? x : y;
	*first = low;
	*rows = high - low;
	return a->position == b->position && a->tokens == b->tokens && high > low && (a->rows != *rows || b->rows != *rows);
}

static vn_status align_rows(vn_comparison *c, vn_recording *other, const char *who, bool cut_reference, vn_error *err)
{
	const vn_step *step;
	const int n = vn_recording_steps(c->ref, &step);
	int64_t first, rows;
	vn_status st = VN_OK;
	for (int i = 0; !st && i < n; i++) {
		const vn_step mine = step[i], *found = vn_recording_step(other, mine.number);
		if (!found || !common_rows(&mine, found, &first, &rows))
			continue;
		const vn_step theirs = *found;
		if (!cut_reference && (first != mine.first_row || rows != mine.rows))
			continue;
		if (c->notes.n < MOST_NOTES)
			vn_lines_add(&c->notes, "step %d: rows %" PRId64 "-%" PRId64 " in the reference, %" PRId64 "-%" PRId64 " in the %s: compared on "
			             "%" PRId64 "-%" PRId64, mine.number, mine.first_row, mine.first_row + mine.rows - 1, theirs.first_row,
			             theirs.first_row + theirs.rows - 1, who, first, first + rows - 1);
		if (!cut_reference || !(st = vn_view_rows(c->ref, mine.number, first, rows, err)))
			st = vn_view_rows(other, mine.number, first, rows, err);
	}
	return st;
}

/* Does the shape agree once axis i is taken from axis order[i]? */
static bool fits(const vn_entry *r, const vn_entry *d, const int *order)
{
	bool same = r->shape.rank == d->shape.rank;
	for (int i = 0; same && i < r->shape.rank; i++)
		same = r->shape.dim[i] == d->shape.dim[order[i]];
	return same;
}

static bool noted(const vn_lines *l, const char *text)
{
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->line[i], text) == 0)
			return true;
	return false;
}

static vn_status align_axes(vn_comparison *c, vn_recording *other, const char *who, vn_error *err)
{
	int order[VN_MAX_RANK];
	char text[200];
	vn_status st = VN_OK;
	for (int i = 0; !st && i < vn_recording_count(other); i++) {
		const vn_entry *d = vn_recording_entry(other, i);
		const int there = *d->axes && d->same_as < 0 ? vn_recording_find(c->ref, d->step, d->name) : -1;
		const vn_entry *r = there >= 0 ? vn_recording_entry(c->ref, there) : NULL;
		if (!r || strcmp(vn_entry_axes(r), d->axes) == 0 || !vn_view_order(d->axes, vn_entry_axes(r), d->shape.rank, order) || !fits(r, d, order))
			continue;
		snprintf(text, sizeof text, "axes '%s' of the %s are taken as '%s'", d->axes, who, vn_entry_axes(r));
		vn_text_clean(text);
		if (c->notes.n < MOST_NOTES && !noted(&c->notes, text))
			vn_lines_add(&c->notes, "%s", text);
		st = vn_view_axes(other, i, order, err);
	}
	return st;
}

vn_status vn_align(vn_comparison *c, vn_recording *other, const char *who, vn_error *err)
{
	const vn_status st = align_rows(c, other, who, true, err); /* first: shapes are compared by axes */
	return st ? st : align_axes(c, other, who, err);
}

vn_status vn_align_to(vn_comparison *c, vn_recording *floor, const char *who, vn_error *err)
{
	const vn_status st = align_rows(c, floor, who, false, err);
	return st ? st : align_axes(c, floor, who, err);
}
