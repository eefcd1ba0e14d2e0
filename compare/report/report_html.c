/* report_html.c: a comparison as one HTML page without network or other files (report_page.h).
 * Where scripts are forbidden, the verdict and the place where the error starts are still shown. */
#include "compare/explain/explain_words.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/check_words.h"
#include "compare/report/next.h"
#include "compare/report/words.h"
#include "compare/text/markup.h"
#include "compare/report/report_page.h"
#include "compare/report/report.h"
#include "compare/weights/weights_report.h"
#include "libref/base/say.h"

#include <limits.h>

enum { NAMED = 12 };

static void name_of(const vn_checkpoint *p, FILE *out)
{
	char label[VN_LABEL];
	fputs("<code class=\"name\">", out);
	vn_html_text(out, vn_label(p, label));
	fputs("</code>", out);
}

static void print_line(FILE *out, const char *title, const char *text)
{
	vn_say(out, "<dt>%s</dt><dd>", title);
	vn_html_text(out, text);
	fputs("</dd>\n", out);
}

static void print_origins(const vn_comparison *c, FILE *out)
{
	if (c->result.n_origins == 0 || (c->result.n_origins == 1 && c->result.origins[0] == c->result.first))
		return;
	vn_say(out, "<dt>%s</dt><dd>", c->result.n_origins > 1 ? "origins" : "origin");
	for (int i = 0; i < c->result.n_origins && i < NAMED; i++) {
		fputs(i ? ", " : "", out);
		name_of(&c->result.checkpoint[c->result.origins[i]], out);
	}
	if (c->result.n_origins > NAMED)
		fprintf(out, " and %d more", c->result.n_origins - NAMED);
	vn_say(out, "<br><span class=\"dim\">Origins: %s.</span></dd>\n", vn_report_say_origin(c));
}

/* Writes at most `most` of the lines that `say` adds, under a title. */
static void print_titled(const vn_comparison *c, const char *title, int most,
                         void (*say)(const vn_comparison *, vn_lines *), FILE *out)
{
	vn_lines lines = { 0 };
	say(c, &lines);
	for (int i = 0; i < lines.n && i < most; i++)
		print_line(out, i ? "" : title, lines.line[i]);
	vn_lines_free(&lines);
}

static void print_beginning(const vn_comparison *c, const vn_story *s, int first, FILE *out)
{
	char                    text[VN_WORDS];
	const vn_checkpoint    *p = &c->result.checkpoint[first];
	const vn_report_detail *x = vn_story_find(s, first);
	vn_say(out, "<dt>%s</dt><dd>", c->result.first >= 0 ? "first divergence" : "first finding");
	name_of(p, out);
	if (p->layer >= 0)
		fprintf(out, " layer %d", p->layer);
	if (*vn_op_of(c, p)) {
		fputs(", op ", out);
		vn_html_text(out, vn_op_of(c, p));
	}
	if (c->result.n_origins == 1 && p->origin)
		vn_say(out, "<br><span class=\"dim\">The only origin: %s.</span>", vn_report_say_origin(c));
	vn_say(out, "</dd>\n<dt>%s</dt><dd>", p->worst >= 0 ? "broken rule" : "finding");
	vn_html_text(out, vn_judge_say_failure(p, text));
	if (vn_judge_worst_why(p)) {
		fputs("<br><q>", out);
		vn_html_text(out, vn_judge_worst_why(p));
		fputs("</q>", out);
	}
	fputs("</dd>\n", out);
	for (int i = 0; x && i < x->profile.words.n; i++)
		print_line(out, i ? "" : "profile", x->profile.words.line[i]);
	print_origins(c, out);
	print_titled(c, "cleared", INT_MAX, vn_report_say_cleared, out);
}

static void next_commands(const vn_comparison *c, FILE *out)
{
	vn_lines lines = { 0 };
	vn_next_commands(c, &lines);
	for (int i = 0; i < lines.n; i++) {
		vn_say(out, "<dt>%s</dt><dd><code>", i ? "" : "next");
		vn_html_text(out, lines.line[i]);
		fputs("</code></dd>\n", out);
	}
	vn_lines_free(&lines);
}

static void print_story(const vn_comparison *c, const vn_story *s, FILE *out)
{
	const int first = vn_first_failure(c);
	char      text[VN_WORDS];
	fprintf(out, "<p class=\"dim\">vernier compare: <code>");
	vn_html_text(out, vn_recording_path(c->opened.cand));
	fputs("</code> judged by <code>", out);
	vn_html_text(out, vn_recording_path(c->opened.ref));
	vn_say(out, "</code></p>\n<h1 class=\"%s\">%s</h1>\n<p>%s</p>\n<dl>\n", c->result.within ? "within" : "outside",
	       vn_report_say_verdict(c), vn_report_say_counts(c, text));
	for (int i = 0; c->result.strict && i < c->result.warnings.n && i < NAMED; i++)
		print_line(out, i ? "" : "warning", c->result.warnings.line[i]);
	print_titled(c, "explained", INT_MAX, vn_explain_say_all, out); /* the answer comes before its reasons */
	vn_weights_html(c->result.weights, out);
	if (first >= 0)
		print_beginning(c, s, first, out);
	else
		print_origins(c, out);
	print_titled(c, "baseline", NAMED, vn_report_say_baseline, out);
	print_titled(c, "measured", NAMED, vn_report_say_scores, out);
	if (*c->result.floor_from)
		print_line(out, "floor", "the unit of this page: " VN_FLOOR_MEANS);
	next_commands(c, out);
	fputs("</dl>\n", out);
}

vn_status vn_report_html(const vn_comparison *c, const vn_story *s, const vn_report_options *o, FILE *out,
                         vn_error *err)
{
	const char       *rest = vn_page_until(NULL, "@TITLE@", out);
	vn_report_options page = *o;

	vn_say(out, "%s: ", vn_report_say_verdict(c));
	vn_xml_text(out, vn_recording_path(c->opened.cand));
	rest = vn_page_until(rest, "@STORY@", out);
	print_story(c, s, out);
	rest = vn_page_until(rest, "@DATA@", out);
	page.page = true;
	FILE *data = vn_page_data(out);
	return data ? vn_page_end(data, rest, vn_report_json(c, s, &page, data, err), out, err)
	            : vn_fail(err, VN_ERR_NOMEM, "no memory for a report");
}
