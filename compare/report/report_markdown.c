/* report_markdown.c: a comparison as a comment on a pull request.
 *
 * GitHub accepts 65536 characters. The verdict and the start of the error come first and are short,
 * whatever the files hold; then the runs, then details, then as many rows of the table as fit; the
 * rest is counted. Text from files is in code spans and fenced blocks, where nothing is markup, a
 * mention or a link.
 */
#include "compare/explain/explain_words.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/check_words.h"
#include "compare/report/next.h"
#include "compare/report/words.h"
#include "compare/text/markup.h"
#include "compare/replay/local.h"
#include "compare/report/report.h"
#include "capture/file/output.h"
#include "compare/weights/weights_report.h"
#include "libref/base/say.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROOM = 65000, /* in bytes, which bounds the characters too */
	DETAIL_ROOM = 24000,
	TABLE_END = 120, /* for the line that counts omitted rows */
	NAMED = 12,      /* origins */
	LINES = 4,       /* of a profile, or of a summary of logits */
	SHOWN = 200,     /* bytes of a name, note and the like */
	FACT = 160,      /* of a fact of a run; at most 2 x 32 of them */
	PATHS = 1100     /* of the file names of a side, such as the ranks of a run */
};

/* ---- the first lines ------------------------------------------------------------ */

static void item_of(FILE *out, const char *title, const char *text, size_t most)
{
	vn_say(out, "- **%s** ", title);
	vn_markdown_code(out, text, most, 0);
	fputc('\n', out);
}

static void print_item(FILE *out, const char *title, const char *text)
{
	item_of(out, title, text, SHOWN);
}

static void write_number(FILE *out, const char *format, double x, bool known)
{
	fputs(" | ", out);
	if (known)
		fprintf(out, format, isnan(x) ? (double)NAN : x); /* a NaN is written without its sign */
	else
		fputc('-', out);
}

static void print_metric(FILE *out, const char *format, const vn_checkpoint *p, vn_metric m)
{
	const double x = vn_metric_shown(p, m);
	write_number(out, format, x, !isnan(x));
}

/* Writes at most `most` of the lines that `say` adds: the first under a title, the others under
 * `then`. Each is cut after `bytes`. */
static void print_titled(const vn_comparison *c, const char *title, const char *then, int most, size_t bytes,
                         void (*say)(const vn_comparison *, vn_lines *), FILE *out)
{
	vn_lines lines = { 0 };
	say(c, &lines);
	for (int i = 0; i < lines.n && i < most; i++)
		item_of(out, i ? then : title, lines.line[i], bytes);
	vn_lines_free(&lines);
}

/* For each origin, the error it added and the error of its inputs. */
static void replayed_origins(const vn_comparison *c, FILE *out)
{
	char label[VN_LABEL];
	fputs("\n| origin | local, \u00d7 floor | local nmse | inherited nmse | gain | operations "
	      "|\n|---|--:|--:|--:|--:|--:|\n",
	      out);
	for (int i = 0; i < c->result.n_origins && i < NAMED; i++) {
		const vn_checkpoint *p = &c->result.checkpoint[c->result.origins[i]];
		fputs("| ", out);
		vn_markdown_code(out, vn_label(p, label), SHOWN, 1);
		write_number(out, "%.3g", vn_local_shown(p), !isnan(vn_local_shown(p)));
		write_number(out, "%.2e", vn_local_nmse(p), !isnan(vn_local_nmse(p)));
		write_number(out, "%.2e", p->replay.inherited, p->replayed && !isnan(p->replay.inherited));
		write_number(out, "%.2g", p->replay.gain, p->replayed && !isnan(p->replay.gain));
		write_number(out, "%.0f", p->replay.span, p->replayed);
		fputs(" |\n", out);
	}
	fputc('\n', out);
	print_titled(c, "Cleared", "Cleared", INT_MAX, SHOWN, vn_report_say_cleared, out);
}

static void print_origins(const vn_comparison *c, FILE *out)
{
	char label[VN_LABEL];
	if (c->result.n_origins == 0)
		return;
	vn_say(out, "- **%s** ", c->result.n_origins > 1 ? "Origins" : "Origin");
	for (int i = 0; i < c->result.n_origins && i < NAMED; i++) {
		fputs(i ? ", " : "", out);
		vn_markdown_code(out, vn_label(&c->result.checkpoint[c->result.origins[i]], label), SHOWN, 0);
	}
	if (c->result.n_origins > NAMED)
		fprintf(out, " and %d more", c->result.n_origins - NAMED);
	vn_say(out, ": %s\n", vn_report_say_origin(c));
	print_titled(c, "Explained", "Explained", LINES, SHOWN, vn_explain_say_all, out);
	if (c->result.replayed)
		replayed_origins(c, out);
}

/* The first divergence and the limit it breaks. */
static void print_beginning(const vn_comparison *c, const vn_story *s, int first, FILE *out)
{
	char                    text[VN_WORDS], label[VN_LABEL];
	const vn_checkpoint    *p = &c->result.checkpoint[first];
	const vn_report_detail *x = vn_story_find(s, first);
	print_item(out, c->result.first >= 0 ? "First divergence" : "First finding", vn_label(p, label));
	item_of(out, p->worst >= 0 ? "Broken rule" : "Finding", vn_judge_say_failure(p, text), VN_WORDS);
	if (vn_judge_worst_why(p))
		print_item(out, "Why this rule", vn_judge_worst_why(p));
	for (int i = 0; x && i < x->profile.words.n && i < LINES; i++)
		print_item(out, "Profile", x->profile.words.line[i]);
	print_origins(c, out);
}

static void print_warnings(const vn_comparison *c, FILE *out)
{
	for (int i = 0; i < c->result.warnings.n && i < 8; i++)
		print_item(out, "Warning", c->result.warnings.line[i]);
}

static void first_lines(const vn_comparison *c, const vn_story *s, FILE *out)
{
	const int first = vn_first_failure(c);
	char      text[VN_WORDS];
	vn_say(out, "### %s vernier: %s\n\n%s\n\n", c->result.within ? "\u2705" : "\u274c", vn_report_say_verdict(c),
	       vn_report_say_counts(c, text));
	vn_weights_markdown(c->result.weights, out);
	if (c->result.strict)
		print_warnings(c, out);
	if (first >= 0)
		print_beginning(c, s, first, out);
	else
		print_origins(c, out);
	print_titled(c, "Next", "Then", LINES, VN_WORDS, vn_next_commands, out);
	print_titled(c, "Baseline", "Better", NAMED, SHOWN, vn_report_say_baseline, out);
	print_titled(c, "Measured", "Measured", LINES, SHOWN, vn_report_say_scores, out);
	fputc('\n', out);
}

/* ---- what is folded away ------------------------------------------------------------ */

static void open_fold(FILE *out, const char *title, const char *name)
{
	vn_say(out, "<details><summary>%s", title);
	if (name) {
		fputs(" <code>", out);
		vn_xml_text(out, name);
		fputs("</code>", out);
	}
	fputs("</summary>\n\n", out);
}

/* Collapsible details of one checkpoint; NULL without memory. */
static char *folded_text(const vn_comparison *c, const vn_report_detail *x, size_t *n)
{
	char  *lines = NULL, *text = NULL, label[VN_LABEL];
	size_t n_lines = 0;
	FILE  *to = open_memstream(&lines, &n_lines), *out = open_memstream(&text, n);
	if (to)
		vn_report_full(c, x, false, to);
	bool good = vn_text_close(to, &lines);
	if (good && out) {
		open_fold(out, x->checkpoint == c->result.first ? "First divergence" : "Origin",
		          vn_label(&c->result.checkpoint[x->checkpoint], label));
		vn_markdown_fence(out, lines);
		fputs("\n</details>\n\n", out);
	}
	good = vn_text_close(out, &text) && good;
	free(lines);
	if (good)
		return text;
	free(text);
	return NULL;
}

static void print_details(const vn_comparison *c, const vn_story *s, FILE *out)
{
	size_t used = 0;
	for (int i = 0; i < s->n; i++) {
		const int point = s->detail[i].checkpoint;
		size_t    n = 0;
		char *text = point == c->result.first || c->result.checkpoint[point].origin ? folded_text(c, &s->detail[i], &n)
		                                                                            : NULL;
		if (text && used + n < DETAIL_ROOM) {
			used += n;
			fwrite(text, 1, n, out);
		}
		free(text);
	}
}

static void fact_of(FILE *out, const char *key, const char *ref, const char *cand, size_t most)
{
	fputs("| ", out);
	vn_markdown_code(out, key, FACT, 1);
	fputs(" | ", out);
	vn_markdown_code(out, ref ? ref : "-", most, 1);
	fputs(" | ", out);
	vn_markdown_code(out, cand ? cand : "-", most, 1);
	fputs(" |\n", out);
}

static void print_fact(FILE *out, const char *key, const char *ref, const char *cand)
{
	fact_of(out, key, ref, cand, FACT);
}

static void print_runs(const vn_comparison *c, const vn_report_options *o, FILE *out)
{
	const vn_facts *r = vn_recording_run(c->opened.ref), *d = vn_recording_run(c->opened.cand);
	open_fold(out, "Runs, limits and floor", NULL);
	print_item(out, "Limits", vn_report_say_limits(c));
	print_item(out, "Chosen", o->limits_chosen);
	if (!c->request.options->bitwise)
		print_item(out, "Floor (" VN_FLOOR_MEANS ")", *c->result.floor_from ? c->result.floor_from : "none");
	for (int i = 0; i < c->result.notes.n && i < 8; i++)
		print_item(out, "Note", c->result.notes.line[i]);
	if (!c->result.strict)
		print_warnings(c, out);
	fputs("\n| | reference | candidate |\n|---|---|---|\n", out);
	fact_of(out, "path", vn_recording_path(c->opened.ref), vn_recording_path(c->opened.cand), PATHS);
	print_fact(out, "weights", vn_recording_provenance(c->opened.ref), vn_recording_provenance(c->opened.cand));
	for (int i = 0; i < r->n; i++)
		print_fact(out, r->fact[i].key, r->fact[i].value, vn_facts_get(d, r->fact[i].key));
	for (int i = 0; i < d->n; i++)
		if (!vn_facts_get(r, d->fact[i].key))
			print_fact(out, d->fact[i].key, NULL, d->fact[i].value);
	fputs("\n</details>\n", out);
}

/* ---- the table --------------------------------------------------------------------- */

static bool print_row(const void *ctx, int i, FILE *out)
{
	const vn_comparison *c = ctx;
	const vn_checkpoint *p = &c->result.checkpoint[i];
	char                 label[VN_LABEL], text[VN_WORDS];
	double               ratio = 0;
	const bool           has_ratio = p->m.n && vn_ratio_of(c, p, &ratio);
	if (!p->fails)
		return false;
	fputs("| ", out);
	vn_markdown_code(out, vn_label(p, label), SHOWN, 1);
	print_metric(out, "%.2e", p, VN_M_NMSE);
	write_number(out, ratio < 1000 ? "%.2f" : "%.1e", ratio, has_ratio);
	print_metric(out, "%.6f", p, VN_M_COSINE);
	print_metric(out, "%.2e", p, VN_M_MAX_ABS);
	fputs(" | ", out);
	vn_markdown_code(out, vn_judge_say_failure(p, text), VN_WORDS, 1);
	fputs(" |\n", out);
	return true;
}

/* A table of the failures, in at most `room` bytes. */
static vn_status print_table(const vn_comparison *c, size_t room, FILE *out, vn_error *err)
{
	static const char head[] =
		"| checkpoint | nmse | \u00d7 floor | cosine | max abs | limit broken |\n|---|--:|--:|--:|--:|---|\n";
	const size_t taken = sizeof head + TABLE_END;
	int          left = c->result.n_fails;
	if (left == 0)
		return VN_OK;
	fputs(head, out);
	if (!vn_markdown_rows(out, room > taken ? room - taken : 0, print_row, c, c->result.n_checkpoints, &left))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a report");
	if (left)
		fprintf(out, "\n%d more checkpoints are outside. They do not fit into one comment.\n", left);
	fputc('\n', out);
	return VN_OK;
}

vn_status vn_report_markdown(const vn_comparison *c, const vn_story *s, const vn_report_options *o, FILE *out,
                             vn_error *err)
{
	char     *top = NULL, *tail = NULL;
	size_t    n_top = 0, n_tail = 0;
	vn_status st = VN_OK;
	FILE     *a = open_memstream(&top, &n_top), *b = open_memstream(&tail, &n_tail);
	if (a)
		first_lines(c, s, a);
	if (b) {
		print_details(c, s, b);
		print_runs(c, o, b);
	}
	const bool no_top = !vn_text_close(a, &top), no_tail = !vn_text_close(b, &tail);
	if (no_top || no_tail)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for a report");
	else {
		fwrite(top, 1, n_top, out);
		st = print_table(c, n_top + n_tail < ROOM ? ROOM - n_top - n_tail : 0, out, err);
		fwrite(tail, 1, n_tail, out);
	}
	free(top);
	free(tail);
	return st;
}
