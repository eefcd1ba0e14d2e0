/* table_report.c: the table in its forms; see table.h. */
#include "compare/table/table.h"
#include "compare/comparison/checkpoint.h"
#include "compare/many/many_report.h"
#include "compare/text/markup.h"

#include "libref/base/say.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* SHOWN: bytes of a name; then the widths of columns in text, negative if aligned at the left */
enum { SHOWN = 200, TOKEN = 5, RECORDING = -9, NUMBER = 10 /* "-1.234e-05" */, STATUS = 0 };

static void print_cell(const vn_table *t, FILE *out, int width, const char *text)
{
	if (t->form == VN_TABLE_TEXT) {
		vn_say(out, "  %*s", width, text);
	} else if (t->form == VN_TABLE_CSV) {
		fputc(',', out);
		vn_csv_text(out, text);
	} else if (t->form == VN_TABLE_MARKDOWN) {
		vn_say(out, " %s |", text);
	} else {
		fputs("<td class=\"n\">", out);
		vn_html_text(out, text);
		fputs("</td>", out);
	}
}

static void first_cell(const vn_table *t, FILE *out, int width, const char *text)
{
	if (t->form == VN_TABLE_TEXT) {
		vn_say(out, "%-*s", width, text);
	} else if (t->form == VN_TABLE_CSV) {
		vn_csv_text(out, text);
	} else {
		fputs(t->form == VN_TABLE_MARKDOWN ? "|" : "<tr>", out);
		print_cell(t, out, width, text);
	}
}

static void end_line(const vn_table *t, FILE *out)
{
	fputs(t->form == VN_TABLE_HTML ? "</tr>\n" : "\n", out);
}

/* What stands for an unknown number. */
static const char *say_unknown(const vn_table *t)
{
	return t->form == VN_TABLE_CSV ? "" : "-";
}

static void number_cell(const vn_table *t, FILE *out, bool known, double x)
{
	char text[32];

	/* a NaN is written without its sign */
	snprintf(text, sizeof text, t->form == VN_TABLE_CSV ? "%.9g" : "%.4g", isnan(x) ? (double)NAN : x);
	print_cell(t, out, NUMBER, known ? text : say_unknown(t));
}

/* "reference" or "candidate"; with several candidates, the candidate's letter. */
static const char *who_is(const vn_table *t, int line, char text[16])
{
	if (line == 0)
		return "reference";
	if (t->many->n == 1)
		return "candidate";
	snprintf(text, 16, "%c", vn_many_letter(line - 1));
	return text;
}

/* Who recorded a line's tensors; "" if it was not compared. */
static const char *about_of(const vn_table *t, int line)
{
	return line ? vn_many_said(&t->many->candidate[line - 1], "about") : vn_many_ref_about(t->many);
}

static const char *status_of(const vn_table *t, int row, int line)
{
	const vn_many_cell *x = line ? vn_many_cell_of(t->many, row, line - 1) : NULL;
	if (line == 0)
		return "";
	if (!x)
		return t->many->candidate[line - 1].status == 2 ? "not compared" : "-";
	return x->fails && x->status == VN_OUTSIDE ? "OUTSIDE" : vn_checkpoint_status_text(x->status);
}

/* In forms for people, later lines of a row show neither its name nor the token. */
static void print_line(const vn_table *t, int row, const vn_table_group *g, int line, int width, FILE *out)
{
	const vn_table_line *l = &g->line[line];
	const vn_many_cell  *x = line ? vn_many_cell_of(t->many, row, line - 1) : NULL;
	const double         some[] = { l->stats.min, l->stats.max, l->stats.mean, l->stats.rms };
	const bool           later = line && t->form != VN_TABLE_CSV;
	const char          *label = later ? "" : t->many->row[row].label;
	char                 token[24], who[16];

	if (t->form == VN_TABLE_MARKDOWN && *label) {
		fputs("| ", out);
		vn_markdown_code(out, label, SHOWN, 1);
		fputs(" |", out);
	} else {
		first_cell(t, out, width, label);
	}
	snprintf(token, sizeof token, "%" PRId64, g->token);
	print_cell(t, out, TOKEN, later ? "" : g->token < 0 ? say_unknown(t) : token);
	print_cell(t, out, RECORDING, who_is(t, line, who));
	for (int i = 0; i < t->first; i++)
		number_cell(t, out, l->there && i < l->n, l->value[i]);
	for (int i = 0; i < 4; i++)
		number_cell(t, out, l->there, some[i]);
	if (line || t->form != VN_TABLE_TEXT) {
		number_cell(t, out, x && x->measured, x ? x->max_abs : 0);
		number_cell(t, out, x && x->measured, x ? x->max_rel : 0);
		print_cell(t, out, STATUS, status_of(t, row, line));
	}
	if (t->form == VN_TABLE_CSV)
		print_cell(t, out, 0, about_of(t, line));
	end_line(t, out);
}

static void print_heading(const vn_table *t, int width, FILE *out)
{
	static const char *const numbers[] = { "min", "max", "mean", "rms", "max abs", "max rel" };
	char                     name[16];

	first_cell(t, out, width, "checkpoint");
	print_cell(t, out, TOKEN, "token");
	print_cell(t, out, RECORDING, "recording");
	for (int i = 0; i < t->first; i++) {
		snprintf(name, sizeof name, "[%d]", i);
		print_cell(t, out, NUMBER, name);
	}
	for (int i = 0; i < 6; i++)
		print_cell(t, out, NUMBER, numbers[i]);
	print_cell(t, out, STATUS, "status");
	if (t->form == VN_TABLE_CSV)
		print_cell(t, out, 0, "recorded by");
	end_line(t, out);
	if (t->form == VN_TABLE_MARKDOWN) {
		fputs("|---|--:|---|", out);
		for (int i = 0; i < t->first + 6; i++)
			fputs("--:|", out);
		fputs("---|\n", out);
	}
}

/* Lists the recordings. In a CSV they have a column. */
static void print_recordings(const vn_table *t, FILE *out)
{
	char path[PATH_MAX], who[16];

	for (int line = 0; line <= t->many->n; line++) {
		const vn_many_candidate *x = line ? &t->many->candidate[line - 1] : NULL;
		const char              *about = about_of(t, line), *verdict = x ? vn_many_said(x, "verdict") : "";
		snprintf(path, sizeof path, "%s", x ? x->path : t->many->ref);
		if (t->form == VN_TABLE_TEXT) {
			vn_say(out, "%-10s %s%s%s", who_is(t, line, who), vn_text_clean(path, sizeof path), x ? "  " : "", verdict);
			vn_say(out, "%s%s%s\n", *about ? "  (" : "", about, *about ? ")" : "");
		} else if (t->form == VN_TABLE_MARKDOWN) {
			vn_say(out, "- %s ", who_is(t, line, who));
			vn_markdown_code(out, path, SHOWN, 0);
			vn_say(out, "%s%s", x ? ": " : "", verdict);
			if (*about) {
				fputs("; ", out);
				vn_markdown_code(out, about, SHOWN, 0);
			}
			fputc('\n', out);
		} else {
			vn_say(out, "<li>%s <code>", who_is(t, line, who));
			vn_html_text(out, path);
			vn_say(out, "</code>%s%s%s", x ? ": " : "", verdict, *about ? "; " : "");
			vn_html_text(out, about);
			fputs("</li>\n", out);
		}
	}
}

static void print_head(const vn_table *t, int width, FILE *out)
{
	if (t->form == VN_TABLE_HTML)
		fprintf(out, "%s<title>vernier table</title>\n</head>\n<body>\n<h1>Values of %d checkpoints</h1>\n<ul>\n",
		        vn_page_plain, t->many->n_rows);
	if (t->form != VN_TABLE_CSV)
		print_recordings(t, out);
	if (t->form == VN_TABLE_HTML)
		fputs("</ul>\n<div class=\"scroll\"><table>\n", out);
	else if (t->form != VN_TABLE_CSV)
		fputc('\n', out);
	print_heading(t, width, out);
}

vn_status vn_table_write(const vn_table *t, FILE *out, vn_error *err)
{
	vn_table_group g;
	int            width = 10;

	if (t->form == VN_TABLE_JSON)
		return vn_table_json(t, out, err);

	for (int row = 0; row < t->many->n_rows; row++) {
		const int n = (int)strlen(t->many->row[row].label);
		width = n > width ? n : width;
	}
	print_head(t, width, out);
	for (int row = 0; row < t->many->n_rows; row++) {
		const vn_status st = vn_table_read(t, row, &g, err);
		if (st)
			return st;
		for (int line = 0; line <= t->many->n; line++)
			print_line(t, row, &g, line, width, out);
	}
	if (t->form == VN_TABLE_HTML)
		fputs("</table></div>\n</body>\n</html>\n", out);
	return VN_OK;
}
