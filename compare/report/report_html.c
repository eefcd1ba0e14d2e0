/* report_html.c: a comparison as one HTML page without network or other files. Where scripts are
 * forbidden, the verdict and the place where the error starts are still shown.
 *
 * The page itself is in compare/html; this file inserts its title, the story at the top, and the
 * data, which is the JSON report. Text from recordings reaches the page in two ways: escaped by
 * vn_html_text, and as strings in that JSON, of which the script makes text nodes.
 */
#include "compare/explain/explain_words.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/check_words.h"
#include "compare/report/next.h"
#include "compare/report/words.h"
#include "compare/text/markup.h"
#include "compare/report/page.h"
#include "compare/report/report.h"
#include "compare/weights/weights_report.h"

#include <limits.h>
#include <string.h>

enum { NAMED = 12 };

static void name_of(const vn_checkpoint *p, FILE *out)
{
	char label[VN_LABEL];
	fputs("<code class=\"name\">", out);
	vn_html_text(out, vn_label(p, label));
	fputs("</code>", out);
}

static void line(FILE *out, const char *title, const char *text)
{
	fprintf(out, "<dt>%s</dt><dd>", title);
	vn_html_text(out, text);
	fputs("</dd>\n", out);
}

static void origins(const vn_comparison *c, FILE *out)
{
	if (c->result.n_origins == 0 || (c->result.n_origins == 1 && c->result.origins[0] == c->result.first))
		return;
	fprintf(out, "<dt>%s</dt><dd>", c->result.n_origins > 1 ? "origins" : "origin");
	for (int i = 0; i < c->result.n_origins && i < NAMED; i++) {
		fputs(i ? ", " : "", out);
		name_of(&c->result.point[c->result.origins[i]], out);
	}
	if (c->result.n_origins > NAMED)
		fprintf(out, " and %d more", c->result.n_origins - NAMED);
	fprintf(out, "<br><span class=\"dim\">Origins: %s.</span></dd>\n", vn_say_origin(c));
}

/* At most `most` of the lines that `say` adds, under a title. */
static void titled(const vn_comparison *c, const char *title, int most, void (*say)(const vn_comparison *, vn_lines *),
                   FILE *out)
{
	vn_lines lines = { 0 };
	say(c, &lines);
	for (int i = 0; i < lines.n && i < most; i++)
		line(out, i ? "" : title, lines.line[i]);
	vn_lines_free(&lines);
}

static void beginning(const vn_comparison *c, const vn_story *s, int first, FILE *out)
{
	char text[VN_WORDS];
	const vn_checkpoint *p = &c->result.point[first];
	const vn_report_detail *x = vn_story_find(s, first);
	fprintf(out, "<dt>%s</dt><dd>", c->result.first >= 0 ? "first divergence" : "first finding");
	name_of(p, out);
	if (p->layer >= 0)
		fprintf(out, " layer %d", p->layer);
	if (*vn_op_of(c, p)) {
		fputs(", op ", out);
		vn_html_text(out, vn_op_of(c, p));
	}
	if (c->result.n_origins == 1 && p->origin)
		fprintf(out, "<br><span class=\"dim\">The only origin: %s.</span>", vn_say_origin(c));
	fprintf(out, "</dd>\n<dt>%s</dt><dd>", p->worst >= 0 ? "broken rule" : "finding");
	vn_html_text(out, vn_say_failure(p, text));
	if (vn_worst_why(p)) {
		fputs("<br><q>", out);
		vn_html_text(out, vn_worst_why(p));
		fputs("</q>", out);
	}
	fputs("</dd>\n", out);
	for (int i = 0; x && i < x->profile.words.n; i++)
		line(out, i ? "" : "profile", x->profile.words.line[i]);
	origins(c, out);
	titled(c, "cleared", INT_MAX, vn_say_cleared, out);
}

static void next_commands(const vn_comparison *c, FILE *out)
{
	vn_lines lines = { 0 };
	vn_next_commands(c, &lines);
	for (int i = 0; i < lines.n; i++) {
		fprintf(out, "<dt>%s</dt><dd><code>", i ? "" : "next");
		vn_html_text(out, lines.line[i]);
		fputs("</code></dd>\n", out);
	}
	vn_lines_free(&lines);
}

static void story(const vn_comparison *c, const vn_story *s, FILE *out)
{
	const int first = vn_first_failure(c);
	char text[VN_WORDS];
	fprintf(out, "<p class=\"dim\">vernier compare: <code>");
	vn_html_text(out, vn_recording_path(c->opened.cand));
	fputs("</code> judged by <code>", out);
	vn_html_text(out, vn_recording_path(c->opened.ref));
	fprintf(out, "</code></p>\n<h1 class=\"%s\">%s</h1>\n<p>%s</p>\n<dl>\n", c->result.within ? "within" : "outside",
	        vn_say_verdict(c), vn_say_counts(c, text));
	for (int i = 0; c->result.strict && i < c->result.warnings.n && i < NAMED; i++)
		line(out, i ? "" : "warning", c->result.warnings.line[i]);
	vn_weights_html(c->result.weights, out);
	if (first >= 0)
		beginning(c, s, first, out);
	else
		origins(c, out);
	titled(c, "explained", INT_MAX, vn_say_explanations, out);
	titled(c, "baseline", NAMED, vn_say_baseline, out);
	titled(c, "measured", NAMED, vn_say_scores, out);
	if (*c->result.floor_from)
		line(out, "floor", "the unit of this page: " VN_FLOOR_MEANS);
	next_commands(c, out);
	fputs("</dl>\n", out);
}

/* A stream that writes to a file. In JSON a '<' occurs only inside strings; escaping it keeps the enclosing
 * element from ending. */
static ssize_t escaped(void *file, const char *text, size_t n)
{
	FILE *out = file;
	for (size_t at = 0; at < n;) {
		const char  *next = memchr(text + at, '<', n - at);
		const size_t plain = next ? (size_t)(next - text) - at : n - at;
		fwrite(text + at, 1, plain, out);
		if (next)
			fputs("\\u003c", out);
		at += plain + (next != NULL);
	}
	return ferror(out) ? 0 : (ssize_t)n;
}

static vn_status data(const vn_comparison *c, const vn_story *s, const vn_report_options *o, FILE *out, vn_error *err)
{
	vn_report_options page = *o;
	page.page = true;
	FILE *to = fopencookie(out, "w", (cookie_io_functions_t) { .write = escaped });
	if (!to)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a report");
	vn_status st = vn_report_json(c, s, &page, to, err);
	if (fclose(to) != 0 && !st)
		st = vn_fail(err, VN_ERR_IO, "the page could not be written");
	return st;
}

/* Writes the page up to a mark and returns what follows it. */
static const char *up_to(const char *page, const char *mark, FILE *out)
{
	const char *at = strstr(page, mark);
	fwrite(page, 1, (size_t)(at - page), out);
	return at + strlen(mark);
}

vn_status vn_report_html(const vn_comparison *c, const vn_story *s, const vn_report_options *o, FILE *out,
                         vn_error *err)
{
	const char *page = up_to((const char *)vn_page, "@TITLE@", out);
	fprintf(out, "%s: ", vn_say_verdict(c));
	vn_xml_text(out, vn_recording_path(c->opened.cand));
	page = up_to(page, "@STORY@", out);
	story(c, s, out);
	page = up_to(page, "@DATA@", out);
	const vn_status st = data(c, s, o, out, err);
	fputs(page, out);
	return st;
}
