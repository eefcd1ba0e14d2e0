/* many_text.c: several candidates for a person at a terminal. */
#include "compare/many/many_report.h"
#include "compare/report/report.h"
#include "compare/result/words.h"

#include "libref/base/say.h"

#include <limits.h>
#include <string.h>

enum { WARNINGS = 4, REFUSALS = 12, LINES = 20, MISSING = 3 }; /* of a candidate; of the table; rows */

static void print_candidate(const vn_many *m, int i, const vn_many_options *o, FILE *out)
{
	const vn_many_candidate *x = &m->candidate[i];
	const json_t            *refusals = vn_many_list(x, "refusals"), *warnings = vn_many_list(x, "warnings");
	const int                refused = vn_document_lines(refusals), warned = vn_document_lines(warnings);
	const char              *about = vn_many_said(x, "about"), *floor = vn_many_said(x, "floor");
	char                     path[PATH_MAX], words[VN_MANY_VERDICT];

	vn_say(out, "%-10c %s", vn_many_letter(i), vn_printable_path(x->path, path));
	if (*about)
		vn_say(out, "  %s(%s)%s", VN_DIM(o->colour), about, VN_COLOUR_OFF(o->colour));
	vn_say(out, "\n%-10s %s%s%s\n", "", x->status ? VN_RED(o->colour) : VN_GREEN(o->colour),
	       vn_many_say_verdict(x, words), VN_COLOUR_OFF(o->colour));
	for (int k = 0; k < refused && k < REFUSALS; k++)
		vn_say(out, "%-10s refused: %s\n", "", vn_document_line(refusals, k));
	if (refused > REFUSALS)
		vn_say(out, "%-10s refused: and for %d more reasons; --format json lists them\n", "", refused - REFUSALS);
	if (*vn_many_said(x, "limits"))
		vn_say(out, "%-10s limits %s; floor %s\n", "", vn_many_said(x, "limits"), *floor ? floor : "none");
	for (int k = 0; k < warned && k < WARNINGS; k++)
		vn_say(out, "%-10s warning: %s\n", "", vn_document_line(warnings, k));
	if (warned > WARNINGS)
		vn_say(out, "%-10s %d more warnings: compare this candidate alone\n", "", warned - WARNINGS);
}

/* ---- the table ------------------------------------------------------------------ */

typedef struct table_widths {
	int label, odd, cell[VN_MANY_MOST];
	int origin[VN_MANY_MOST]; /* row of each candidate's first origin; n_rows: none */
} table_widths;

static int first_origin(const vn_many *m, int candidate)
{
	int row = 0;

	for (; row < m->n_rows; row++) {
		const vn_many_cell *x = vn_many_cell_of(m, row, candidate);
		if (x && x->there && x->origin)
			break;
	}
	return row;
}

/* Which rows are folded: those in which no candidate is outside, those that are only missing
 * somewhere, and those in which each that is outside has an origin before. */
typedef enum many_row_kind { MANY_ALONE, MANY_WITHIN, MANY_MISSING, MANY_BEHIND } many_row_kind;

static many_row_kind kind_of(const vn_many *m, const vn_many_options *o, const table_widths *w, int row)
{
	if (o->all)
		return MANY_ALONE;
	if (!vn_many_fails(m, row))
		return MANY_WITHIN;
	many_row_kind kind = MANY_MISSING;
	for (int i = 0; i < m->n; i++) {
		const vn_many_cell *x = vn_many_cell_of(m, row, i);
		if (!x || !x->there || !x->fails || x->status == VN_MISSING || x->status == VN_EXTRA)
			continue;
		if (!x->measured || x->origin || row < w->origin[i])
			return MANY_ALONE;
		kind = MANY_BEHIND;
	}
	return kind;
}

static int wider_of(int width, const char *text)
{
	const int n = (int)strlen(text);
	return n > width ? n : width;
}

static table_widths measure_widths(const vn_many *m, const vn_many_options *o)
{
	table_widths w = { .label = 10, .odd = 7 };
	char         text[VN_MANY_CELL], odd[VN_MANY_LETTERS];

	for (int i = 0; i < m->n; i++)
		w.origin[i] = first_origin(m, i);
	for (int row = 0; row < m->n_rows; row++) {
		const many_row_kind kind = kind_of(m, o, &w, row);
		if (kind != MANY_ALONE && kind != MANY_MISSING)
			continue;
		w.label = wider_of(w.label, m->row[row].label);
		w.odd = wider_of(w.odd, vn_many_say_odd(m, row, odd));
		for (int i = 0; i < m->n; i++)
			w.cell[i] = wider_of(w.cell[i], vn_many_say_cell(vn_many_cell_of(m, row, i), text));
	}
	return w;
}

static void one_row(const vn_many *m, const vn_many_options *o, const table_widths *w, int row, FILE *out)
{
	char text[VN_MANY_CELL], odd[VN_MANY_LETTERS];
	int  before = 0; /* padding owed by the previous cell */
	vn_say(out, "%-*s  %-*s", w->label, m->row[row].label, w->odd, vn_many_say_odd(m, row, odd));
	for (int i = 0; i < m->n; i++) {
		const vn_many_cell *x = vn_many_cell_of(m, row, i);
		if (m->candidate[i].status == 2)
			continue;
		const int length = (int)strlen(vn_many_say_cell(x, text));
		vn_say(out, "%*s  %s%s%s", before, "", x && x->fails ? VN_RED(o->colour) : "", text,
		       x && x->fails ? VN_COLOUR_OFF(o->colour) : "");
		before = w->cell[i] - length;
	}
	fputc('\n', out);
}

/* How many rows of from..to have this kind. */
static int count_kind(const vn_many *m, const vn_many_options *o, const table_widths *w, int from, int to,
                      many_row_kind kind)
{
	int n = 0;

	for (int row = from; row < to; row++)
		n += kind_of(m, o, w, row) == kind;
	return n;
}

/* Where the fold that begins in this row ends. With what is behind an origin, what stands between
 * is folded. */
static int end_of_fold(const vn_many *m, const vn_many_options *o, const table_widths *w, int row)
{
	const many_row_kind kind = kind_of(m, o, w, row);
	int                 end = row + 1;

	for (int k = end; kind != MANY_ALONE && k < m->n_rows; k++) {
		const many_row_kind next = kind_of(m, o, w, k);
		if (next == kind)
			end = k + 1;
		else if (kind != MANY_BEHIND || next == MANY_ALONE)
			break;
	}
	return kind == MANY_MISSING && end - row <= MISSING ? row + 1 : end;
}

/* Summarises rows from..to, none of which stands alone. */
static void print_fold(const vn_many *m, const vn_many_options *o, const table_widths *w, int from, int to, FILE *out)
{
	const int   n = to - from, behind = count_kind(m, o, w, from, to, MANY_BEHIND);
	const int   missing = count_kind(m, o, w, from, to, MANY_MISSING);
	const char *words = behind    ? "outside, all behind an origin (--all)"
	                    : missing ? "not in every recording (--all)"
	                              : "within";

	if (n == 1)
		vn_say(out, "%-*s  %s\n", w->label, m->row[from].label, words);
	else if (behind && behind < n)
		vn_say(out, "%s to %s: %d checkpoints, %d of them %s\n", m->row[from].label, m->row[to - 1].label, n, behind,
		       words);
	else
		vn_say(out, "%s to %s: %d checkpoints %s\n", m->row[from].label, m->row[to - 1].label, n, words);
}

static void print_table(const vn_many *m, const vn_many_options *o, FILE *out)
{
	const table_widths w = measure_widths(m, o);
	vn_say(out, "\n%s%s%s\n", VN_DIM(o->colour), vn_many_legend(m), VN_COLOUR_OFF(o->colour));
	vn_say(out, "%-*s  %-*s", w.label, "checkpoint", w.odd, "outside");
	for (int i = 0, before = 0; i < m->n; i++)
		if (m->candidate[i].status < 2) {
			vn_say(out, "%*s  %c", before, "", vn_many_letter(i));
			before = w.cell[i] - 1;
		}
	fputc('\n', out);
	for (int row = 0, lines = 0, end; row < m->n_rows; row = end, lines++) {
		end = end_of_fold(m, o, &w, row);
		if (lines >= LINES && !o->all && end < m->n_rows) {
			const int n = m->n_rows - row, missing = count_kind(m, o, &w, row, m->n_rows, MANY_MISSING);
			fprintf(out, "... %d more checkpoints, %d of them outside", n,
			        n - missing - count_kind(m, o, &w, row, m->n_rows, MANY_WITHIN));
			if (missing)
				fprintf(out, ", %d not in every recording", missing);
			fputs(" (--all)\n", out);
			break;
		}
		if (end == row + 1 && kind_of(m, o, &w, row) != MANY_WITHIN)
			one_row(m, o, &w, row, out);
		else
			print_fold(m, o, &w, row, end, out);
	}
	fputc('\n', out);
}

vn_status vn_many_text(const vn_many *m, const vn_many_options *o, FILE *out, vn_error *err)
{
	char     path[PATH_MAX], who[VN_MANY_WHO];
	vn_lines said = { 0 };

	(void)err;
	const char *const by = vn_many_ref_about(m);
	vn_say(out, "%-10s %s", "reference", vn_printable_path(m->ref, path));
	if (*by)
		vn_say(out, "  %s(%s)%s", VN_DIM(o->colour), by, VN_COLOUR_OFF(o->colour));
	fputc('\n', out);
	for (int i = 0; i < m->n; i++)
		print_candidate(m, i, o, out);
	for (int i = 0; i < m->notes.n; i++)
		vn_say(out, "%-10s %s\n", "note", m->notes.line[i]);
	print_table(m, o, out);
	vn_many_say(m, &said);
	for (int i = 0; i < said.n; i++)
		vn_say(out, "%s\n", said.line[i]);
	vn_lines_free(&said);
	if (vn_many_count(m, 1))
		vn_many_next(m, &said);
	for (int i = 0; i < said.n; i++)
		vn_say(out, "%-10s %s\n", i ? "" : "next", said.line[i]);
	vn_lines_free(&said);
	vn_say(out, "%s%s%s%s: %s\n", VN_BOLD(o->colour), vn_many_status(m) ? VN_RED(o->colour) : VN_GREEN(o->colour),
	       vn_many_say_all(m), VN_COLOUR_OFF(o->colour), vn_many_say_who(m, who));
	return VN_OK;
}
