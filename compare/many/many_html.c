/* many_html.c: reports several candidates as one HTML page without network. A vote has no
 * script: no recording of it is the reference of all others. */
#include "compare/many/many_report.h"
#include "compare/report/report_page.h"
#include "compare/text/markup.h"
#include "libref/base/say.h"

#include <math.h>

/* A page opens quickly with this many rows in which all candidates are within. Rows in which a
 * candidate is outside are always included. */
enum { WITHIN_ROWS = 4000, WARNINGS = 8 };

static void print_candidate(const vn_many *m, int i, FILE *out)
{
	const vn_many_candidate *x = &m->candidate[i];
	char                     words[VN_MANY_VERDICT];

	vn_say(out, "<tr><th scope=\"row\">%c</th>", vn_many_letter(i));
	vn_html_say(out,
	            "<td data-head=\"candidate\"><div><code>%s</code><br><span class=\"dim\">%s</span></div></td>"
	            "<td data-head=\"verdict\" class=\"%s\"><div>%s",
	            x->path, vn_many_said(x, "about"), x->status ? "outside" : "within", vn_many_say_verdict(x, words));
	for (int k = 0; k < vn_document_lines(vn_many_list(x, "refusals")); k++)
		vn_html_say(out, "<br>refused: %s", vn_document_line(vn_many_list(x, "refusals"), k));
	for (int k = 0; k < vn_document_lines(vn_many_list(x, "warnings")) && k < WARNINGS; k++)
		vn_html_say(out, "<br><span class=\"dim\">warning: %s</span>",
		            vn_document_line(vn_many_list(x, "warnings"), k));
	vn_html_say(out, "</div></td><td data-head=\"limits\">%s</td><td data-head=\"floor\">%s</td></tr>\n",
	            *vn_many_said(x, "limits") ? vn_many_said(x, "limits") : "-",
	            *vn_many_said(x, "floor") ? vn_many_said(x, "floor") : "none");
}

static void print_candidates(const vn_many *m, FILE *out)
{
	fputs("<div class=\"scroll\"><table class=\"stack many\"><thead><tr>"
	      "<th></th><th>candidate</th><th>verdict</th><th>limits</th><th>floor</th></tr></thead>\n<tbody>\n",
	      out);
	for (int i = 0; i < m->n; i++)
		print_candidate(m, i, out);
	fputs("</tbody></table></div>\n", out);
}

static void write_number(FILE *out, const char *name, const char *format, double x)
{
	if (isnan(x))
		return;
	vn_say(out, "%s ", name);
	fprintf(out, format, x);
	fputs("; ", out);
}

static void print_cell(const vn_many_cell *x, FILE *out)
{
	char text[VN_MANY_CELL];
	vn_say(out, "<td class=\"n%s\"", x && x->fails ? " out" : "");
	if (x && x->measured) {
		fputs(" title=\"", out);
		write_number(out, "cosine", "%.8f", x->cosine);
		write_number(out, "max abs", "%.3e", x->max_abs);
		write_number(out, "max rel", "%.3e", x->max_rel);
		vn_say(out, "%s\"", x->origin ? "origin" : x->fails ? "outside" : "within");
	}
	vn_html_say(out, x && x->origin ? ">%s origin</td>" : ">%s</td>", vn_many_say_cell(x, text));
}

static void print_rows(const vn_many *m, FILE *out)
{
	char odd[VN_MANY_LETTERS];
	int  within = 0;

	vn_say(out,
	       "<p class=\"dim\">%s.</p>\n<div class=\"scroll tall\">"
	       "<table class=\"many\"><thead><tr><th>checkpoint</th><th>outside</th>",
	       vn_many_legend(m));
	for (int i = 0; i < m->n; i++)
		if (m->candidate[i].status < 2)
			vn_say(out, "<th>%c</th>", vn_many_letter(i));
	fputs("</tr></thead>\n<tbody>\n", out);
	for (int row = 0; row < m->n_rows; row++) {
		if (!vn_many_fails(m, row) && ++within > WITHIN_ROWS)
			continue;
		vn_html_say(out, "<tr><th scope=\"row\"><code>%s</code></th><td>%s</td>", m->row[row].label,
		            vn_many_say_odd(m, row, odd));
		for (int i = 0; i < m->n; i++)
			if (m->candidate[i].status < 2)
				print_cell(vn_many_cell_of(m, row, i), out);
		fputs("</tr>\n", out);
	}
	fputs("</tbody></table></div>\n", out);
	if (within > WITHIN_ROWS)
		fprintf(out, "<p>%d more checkpoints, at which all are within, are left out: --format json has them.</p>\n",
		        within - WITHIN_ROWS);
}

/* ---- the whole ------------------------------------------------------------------------- */

static void print_title(const vn_many *m, FILE *out)
{
	vn_say(out, "%s: %d %s", vn_many_say_all(m), m->n, m->vote ? "recordings" : "candidates");
}

static void where_they_leave(const vn_many *m, FILE *out)
{
	vn_lines said = { 0 };

	fputs("<h2>Where they diverge</h2>\n<ul>\n", out);
	vn_many_say(m, &said);
	for (int i = 0; i < said.n; i++)
		vn_html_say(out, "<li>%s</li>\n", said.line[i]);
	vn_lines_free(&said);
	fputs("</ul>\n", out);
}

static void print_beginning(const vn_many *m, FILE *out)
{
	char who[VN_MANY_WHO];

	vn_html_say(out, "<p class=\"dim\">vernier compare: judged by <code>%s</code> %s", m->ref, vn_many_ref_about(m));
	vn_say(out, "</p>\n<h1 class=\"%s\">%s</h1>\n<p>%s.</p>\n", vn_many_status(m) ? "outside" : "within",
	       vn_many_say_all(m), vn_many_say_who(m, who));
	print_candidates(m, out);
	where_they_leave(m, out);
}

/* "B, D" */
static void print_letters(const vn_many *m, const bool *of, bool which, FILE *out)
{
	for (int i = 0, n = 0; i < m->n; i++)
		if (m->candidate[i].page.bytes && of[i] == which)
			vn_say(out, "%s%c", n++ ? ", " : "", vn_many_letter(i));
}

/* Says which candidates the script shows, if it does not show all. */
static void shown_side_by_side(const vn_many *m, FILE *out)
{
	bool shown[VN_MANY_MOST];

	if (vn_many_shown(m, shown) <= VN_MANY_PAGES)
		return;
	fputs("<p>Side by side below are ", out);
	print_letters(m, shown, true, out);
	fputs(", the four worst: outside before within, then by where they diverge. For the maps, details and values of ",
	      out);
	print_letters(m, shown, false, out);
	fputs(" compare them alone; in the table of all checkpoints each has a column.</p>\n", out);
}

/* Writes everything that needs no script. The script adds the maps and details of at most
 * VN_MANY_PAGES candidates. */
static void print_story(const vn_many *m, const char *path, FILE *out)
{
	vn_lines next = { 0 };

	print_beginning(m, out);
	if (vn_many_count(m, 1))
		vn_many_next(m, &next);
	fputs(next.n ? "<dl>\n" : "", out);
	for (int i = 0; i < next.n; i++)
		vn_page_next(next.line[i], i == 0, path, out);
	fputs(next.n ? "</dl>\n" : "", out);
	vn_lines_free(&next);
	shown_side_by_side(m, out);
	fputs("<details class=\"all\"><summary>All checkpoints, a column for each candidate</summary>\n", out);
	print_rows(m, out);
	fputs("</details>\n", out);
}

static vn_status print_data(const vn_many *m, FILE *out, vn_error *err)
{
	bool good = true, shown[VN_MANY_MOST];
	int  n = 0;

	vn_many_shown(m, shown);
	fputs("{\"schema\": \"vernier-compare-many/2\", \"candidates\": [", out);
	for (int i = 0; good && i < m->n; i++)
		if (shown[i]) {
			vn_say(out, "%s\n{\"letter\": \"%c\", \"report\": ", n++ ? "," : "", vn_many_letter(i));
			good = vn_many_copy(&m->candidate[i], &m->candidate[i].page, out);
			fputs("}", out);
		}
	fputs("]}\n", out);
	return good ? VN_OK : vn_fail(err, VN_ERR_IO, "the page could not be written");
}

static vn_status write_vote(const vn_many *m, FILE *out)
{
	fprintf(out, "%s<title>", vn_page_plain);
	print_title(m, out);
	fputs("</title>\n</head>\n<body>\n", out);
	print_beginning(m, out);
	for (int i = 0; i < m->notes.n; i++) /* those of candidates are in the data of their pages */
		vn_html_say(out, "<p class=\"dim\">note: %s</p>\n", m->notes.line[i]);
	fputs("<h2>Checkpoints</h2>\n", out);
	print_rows(m, out);
	fputs("</body>\n</html>\n", out);
	return VN_OK;
}

static vn_status write_page(const vn_many *m, const char *path, FILE *out, vn_error *err)
{
	const char *rest = vn_page_until(NULL, "@TITLE@", out);

	print_title(m, out);
	rest = vn_page_until(rest, "@STORY@", out);
	print_story(m, path, out);
	rest = vn_page_until(rest, "@DATA@", out);
	FILE *data = vn_page_data(out);
	return vn_page_end(data, rest, print_data(m, data, err), out, err);
}

vn_status vn_many_html(const vn_many *m, const vn_many_options *o, FILE *out, vn_error *err)
{
	bool shown[VN_MANY_MOST];

	return vn_many_shown(m, shown) ? write_page(m, o->path, out, err) : write_vote(m, out);
}
