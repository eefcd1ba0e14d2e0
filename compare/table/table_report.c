/* table_report.c: the table in its forms; see table.h. */
#include "compare/table/table.h"
#include "compare/comparison/checkpoint.h"
#include "compare/many/many_report.h"
#include "compare/text/markup.h"

#include "libref/base/text.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

enum { SHOWN = 200, PLACES = 10 /* PLACES: width of a number such as "-1.234e-05" */ };

static void print_cell(const vn_table *t, FILE *out, const char *text);

/* What differs between forms: the start and end of a line, and a cell. */
static void begin_line(const vn_table *t, FILE *out)
{
	fputs(t->form == VN_TABLE_MARKDOWN ? "|" : t->form == VN_TABLE_HTML ? "<tr>" : "", out);
}

static void end_line(const vn_table *t, FILE *out)
{
	fputs(t->form == VN_TABLE_HTML ? "</tr>\n" : "\n", out);
}

static const char *number_text(const vn_table *t, double x, char text[32])
{
	if (isnan(x))
		return "nan";
	if (isinf(x))
		return x > 0 ? "inf" : "-inf";
	snprintf(text, 32, t->form == VN_TABLE_CSV ? "%.9g" : "%.4g", x);
	return text;
}

static void number_cell(const vn_table *t, FILE *out, bool known, double x)
{
	char        text[32];
	const char *shown = known ? number_text(t, x, text) : t->form == VN_TABLE_CSV ? "" : "-";
	if (t->form == VN_TABLE_TEXT)
		fprintf(out, "  %*s", PLACES, shown);
	else
		print_cell(t, out, shown);
}

static void print_cell(const vn_table *t, FILE *out, const char *text)
{
	if (t->form == VN_TABLE_CSV) {
		fputc(',', out);
		vn_csv_text(out, text);
	} else if (t->form == VN_TABLE_MARKDOWN) {
		fprintf(out, " %s |", text);
	} else {
		fputs("<td class=\"n\">", out);
		vn_html_text(out, text);
		fputs("</td>", out);
	}
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
	const char *about = line ? t->many->candidate[line - 1].about : vn_many_ref_about(t->many);
	return about ? about : "";
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

/* Name, token and side of a line. In forms for people, later lines of a row show only the side. */
static void print_names(const vn_table *t, int row, const vn_table_group *g, int line, int width, FILE *out)
{
	char        token[24] = "-", who[16];
	const char *label = t->many->row[row].label;

	if (g->token >= 0)
		snprintf(token, sizeof token, "%" PRId64, g->token);
	if (line && t->form != VN_TABLE_CSV) {
		label = "";
		token[0] = 0;
	}
	if (t->form == VN_TABLE_TEXT) {
		fprintf(out, "%-*s  %5s  %-9s", width, label, token, who_is(t, line, who));
	} else if (t->form == VN_TABLE_CSV) {
		vn_csv_text(out, label);
		print_cell(t, out, g->token >= 0 ? token : "");
		print_cell(t, out, who_is(t, line, who));
	} else {
		if (t->form == VN_TABLE_HTML) {
			print_cell(t, out, label);
		} else {
			fputc(' ', out);
			if (*label)
				vn_markdown_code(out, label, SHOWN, 1);
			fputs(" |", out);
		}
		print_cell(t, out, token);
		print_cell(t, out, who_is(t, line, who));
	}
}

static void one_line(const vn_table *t, int row, const vn_table_group *g, int line, int width, FILE *out)
{
	const vn_table_line *l = &g->line[line];
	const vn_many_cell  *x = line ? vn_many_cell_of(t->many, row, line - 1) : NULL;
	const double         some[] = { l->stats.min, l->stats.max, l->stats.mean, l->stats.rms };
	const char          *status = status_of(t, row, line);

	begin_line(t, out);
	print_names(t, row, g, line, width, out);
	for (int i = 0; i < t->first; i++)
		number_cell(t, out, l->there && i < l->n, l->there && i < l->n ? l->value[i] : 0);
	for (int i = 0; i < 4; i++)
		number_cell(t, out, l->there, some[i]);
	if (line == 0 && t->form == VN_TABLE_TEXT) {
		end_line(t, out);
		return;
	}
	number_cell(t, out, x && x->measured, x ? x->max_abs : 0);
	number_cell(t, out, x && x->measured, x ? x->max_rel : 0);
	if (t->form == VN_TABLE_TEXT)
		fprintf(out, "  %s", status);
	else
		print_cell(t, out, status);
	if (t->form == VN_TABLE_CSV)
		print_cell(t, out, about_of(t, line));
	end_line(t, out);
}

static void print_heading(const vn_table *t, int width, FILE *out)
{
	static const char *const front[] = { "checkpoint", "token", "recording" }, *const behind[] = {
		"min", "max", "mean", "rms", "max abs", "max rel", "status"
	};
	char name[16];

	begin_line(t, out);
	if (t->form == VN_TABLE_TEXT)
		fprintf(out, "%-*s  %5s  %-9s", width, front[0], front[1], front[2]);
	else if (t->form == VN_TABLE_CSV)
		fputs("checkpoint,token,recording", out);
	for (int i = 0; i < 3 && t->form != VN_TABLE_TEXT && t->form != VN_TABLE_CSV; i++)
		print_cell(t, out, front[i]);
	for (int i = 0; i < t->first; i++) {
		snprintf(name, sizeof name, "[%d]", i);
		if (t->form == VN_TABLE_TEXT)
			fprintf(out, "  %*s", PLACES, name);
		else
			print_cell(t, out, name);
	}
	for (int i = 0; i < 7; i++)
		if (t->form == VN_TABLE_TEXT)
			fprintf(out, "  %*s", i < 6 ? PLACES : 0, behind[i]);
		else
			print_cell(t, out, behind[i]);
	if (t->form == VN_TABLE_CSV)
		print_cell(t, out, "recorded by");
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
		const char              *about = about_of(t, line);
		snprintf(path, sizeof path, "%s", x ? x->path : t->many->ref);
		if (t->form == VN_TABLE_TEXT) {
			fprintf(out, "%-10s %s%s%s", who_is(t, line, who), vn_text_clean(path, sizeof path), x ? "  " : "",
			        x ? x->verdict : "");
			fprintf(out, "%s%s%s\n", *about ? "  (" : "", about, *about ? ")" : "");
		} else if (t->form == VN_TABLE_MARKDOWN) {
			fprintf(out, "- %s ", who_is(t, line, who));
			vn_markdown_code(out, path, SHOWN, 0);
			fprintf(out, "%s%s", x ? ": " : "", x ? x->verdict : "");
			if (*about) {
				fputs("; ", out);
				vn_markdown_code(out, about, SHOWN, 0);
			}
			fputc('\n', out);
		} else {
			fprintf(out, "<li>%s <code>", who_is(t, line, who));
			vn_html_text(out, path);
			fprintf(out, "</code>%s%s%s", x ? ": " : "", x ? x->verdict : "", *about ? "; " : "");
			vn_html_text(out, about);
			fputs("</li>\n", out);
		}
	}
}

static void print_head(const vn_table *t, int width, FILE *out)
{
	if (t->form == VN_TABLE_HTML)
		fprintf(out, "%s<title>vernier table</title>\n</head>\n<body>\n<h1>Values of %d checkpoints</h1>\n<ul>\n",
		        vn_many_page, t->many->n_rows);
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
			one_line(t, row, &g, line, width, out);
	}
	if (t->form == VN_TABLE_HTML)
		fputs("</table></div>\n</body>\n</html>\n", out);
	return VN_OK;
}
