/* table_report.c: the table in its forms; see table.h. */
#include "compare/comparison/checkpoint.h"
#include "compare/many/many_report.h"
#include "compare/table/table.h"
#include "compare/text/json.h"
#include "compare/text/markup.h"

#include "libref/base/say.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

static json_t *recording_json(const vn_many *m, int i)
{
	const vn_many_candidate *const x = &m->candidate[i];
	return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o}", "letter", vn_json_letter(vn_many_letter(i)), "path",
	                 vn_json_text(x->path), "recorded_by", vn_many_member(x, "about"), "verdict",
	                 vn_many_verdicts[x->status], "trouble", vn_many_member(x, "trouble"), "refusals",
	                 vn_many_list(x, "refusals") ? vn_many_member(x, "refusals") : json_array());
}

/* Writes one line of a group, or null. flags: the kinds of numbers that are not finite (JSON has
 * none). */
static json_t *line_json(const vn_table_line *l)
{
	json_t *j, *values = json_array(), *flags = json_object();
	char    place[24];

	if (!l->there) {
		json_decref(values);
		json_decref(flags);
		return json_null();
	}
	for (int i = 0; i < l->n; i++) {
		snprintf(place, sizeof place, "[%d]", i);
		if (!isfinite(l->value[i]))
			json_object_set_new(flags, place, json_string(vn_json_not_finite(l->value[i])));
		json_array_append_new(values, vn_json_real(l->value[i]));
	}
	j = json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "values", values, "min", vn_json_real(l->stats.min), "max",
	              vn_json_real(l->stats.max), "mean", vn_json_real(l->stats.mean), "rms", vn_json_real(l->stats.rms),
	              "nan", (json_int_t)l->stats.nan, "inf", (json_int_t)l->stats.inf);
	vn_json_put_flags(j, "flags", flags);
	return j;
}

static json_t *group_json(const vn_table *t, int row, const vn_table_group *g)
{
	const vn_many_row *r = &t->many->row[row];
	json_t            *each = json_array();

	for (int i = 0; i < t->many->n; i++) {
		const vn_many_cell *x = vn_many_cell_of(t->many, row, i);
		const bool          measured = x && x->measured;
		json_t *j = json_pack("{s:o, s:o, s:b, s:o, s:o}", "letter", vn_json_letter(vn_many_letter(i)), "status",
		                      x ? json_string(vn_checkpoint_status_text(x->status)) : json_null(), "fails",
		                      x && x->fails, "max_abs", measured ? vn_json_real(x->max_abs) : json_null(), "max_rel",
		                      measured ? vn_json_real(x->max_rel) : json_null());
		json_object_set_new(j, "tensor", line_json(&g->line[1 + i]));
		json_array_append_new(each, j);
	}
	return json_pack("{s:o, s:i, s:i, s:o, s:o, s:o}", "name", vn_json_text(r->name), "step", r->step, "layer",
	                 r->layer, "token", g->token >= 0 ? json_integer(g->token) : json_null(), "reference",
	                 line_json(&g->line[0]), "candidates", each);
}

/* The same as JSON, schema vernier-table/1. */
static vn_status table_json(const vn_table *t, FILE *out, vn_error *err)
{
	const vn_many    *m = t->many;
	const char *const by = vn_many_ref_about(m);
	vn_lines          next = { 0 };
	vn_table_group    g;
	vn_status         st = VN_OK;
	bool              good;

	fputs("{\n", out);
	good = vn_json_print_members(json_pack("{s:s, s:s, s:o, s:o, s:o}", "schema", "vernier-table/1", "verdict",
	                                       vn_many_verdicts[vn_many_status(m)], "reference", vn_json_text(m->ref),
	                                       "recorded_by", vn_json_text(*by ? by : NULL), "notes",
	                                       vn_json_lines(&t->many->notes)),
	                             out, VN_JSON_LINE, ",\n");
	fputs("\"candidates\": [", out);
	for (int i = 0; good && i < m->n; i++) {
		fputs(i ? ",\n" : "\n", out);
		good = vn_json_print_value(recording_json(m, i), out, VN_JSON_LINE);
	}
	fputs("\n],\n\"next\": ", out);
	vn_many_next(m, &next);
	good = good && vn_json_print_value(vn_json_lines(&next), out, VN_JSON_LINE);
	vn_lines_free(&next);
	fputs(",\n\"checkpoints\": [", out);
	for (int row = 0; good && !st && row < m->n_rows; row++) {
		fputs(row ? ",\n" : "\n", out);
		if (!(st = vn_table_read(t, row, &g, err)))
			good = vn_json_print_value(group_json(t, row, &g), out, VN_JSON_LINE);
	}
	fputs("\n]\n}\n", out);
	if (st)
		return st;
	return good && !ferror(out) ? VN_OK : vn_fail(err, VN_ERR_IO, "the JSON report could not be written");
}

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
		vn_html_say(out, "<td class=\"n%s\">%s</td>",
		            width == NUMBER                                   ? " r"
		            : width == STATUS && strcmp(text, "OUTSIDE") == 0 ? " out"
		                                                              : "",
		            text);
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
		vn_markdown_say(out, SHOWN, 1, "| %s |", label);
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

static void print_notes(const vn_table *t, FILE *out)
{
	for (int i = 0; i < t->many->notes.n; i++)
		if (t->form == VN_TABLE_TEXT)
			vn_say(out, "%-10s %s\n", "note", t->many->notes.line[i]);
		else if (t->form == VN_TABLE_MARKDOWN)
			vn_markdown_say(out, PATH_MAX, 0, "- note: %s\n", t->many->notes.line[i]);
		else
			vn_html_say(out, "<li>note: %s</li>\n", t->many->notes.line[i]);
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
			if (*about)
				vn_markdown_say(out, SHOWN, 0, "; %s", about);
			fputc('\n', out);
		} else {
			vn_html_say(out, "<li>%s <code>%s</code>%s<span class=\"%s\">%s</span>%s%s</li>\n", who_is(t, line, who),
			            path, x ? ": " : "", x && x->status ? "outside" : "within", verdict, *about ? "; " : "", about);
		}
	}
}

static void print_head(const vn_table *t, int width, FILE *out)
{
	if (t->form == VN_TABLE_HTML)
		fprintf(out, "%s<title>vernier table</title>\n</head>\n<body>\n<h1>Values of %d checkpoints</h1>\n<ul>\n",
		        vn_page_plain, t->many->n_rows);
	if (t->form != VN_TABLE_CSV) {
		print_recordings(t, out);
		print_notes(t, out);
	}
	if (t->form == VN_TABLE_HTML)
		fputs("</ul>\n<div class=\"scroll\"><table class=\"values\"><thead>\n", out);
	else if (t->form != VN_TABLE_CSV)
		fputc('\n', out);
	print_heading(t, width, out);
	if (t->form == VN_TABLE_HTML)
		fputs("</thead>\n", out);
}

vn_status vn_table_write(const vn_table *t, FILE *out, vn_error *err)
{
	vn_table_group g;
	int            width = 10;

	if (t->form == VN_TABLE_JSON)
		return table_json(t, out, err);

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
