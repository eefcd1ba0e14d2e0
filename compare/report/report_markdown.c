/* report_markdown.c: a comparison as a comment on a pull request.
 *
 * GitHub accepts 65536 characters. The verdict and the start of the error come first and are short,
 * whatever the files hold; then the runs, then details, then as many rows of the table as fit; the
 * rest is counted. Text from files, an earlier report included, is in code spans and fenced blocks,
 * where nothing is markup, a mention or a link.
 */
#include "compare/comparison/checkpoint.h"
#include "compare/judge/check_words.h"
#include "compare/result/words.h"
#include "compare/text/markup.h"
#include "compare/replay/local.h"
#include "compare/report/report.h"
#include "compare/weights/weights_report.h"
#include "libref/base/alloc.h"
#include "libref/base/say.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

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
	vn_markdown_say(out, most, 0, "%s\n", text);
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

/* Writes at most `most` of the lines: the first under a title, the others under `then`. Each is cut
 * after `bytes`. */
static void print_titled(const char *title, const char *then, int most, size_t bytes, const json_t *lines, FILE *out)
{
	for (int i = 0; i < vn_document_lines(lines) && i < most; i++)
		item_of(out, i ? then : title, vn_document_line(lines, i), bytes);
}

/* For each origin, the error it added and the error of its inputs. */
static void replayed_origins(const vn_document *doc, FILE *out)
{
	char label[VN_LABEL];
	fputs("\n| origin | local, \u00d7 floor | local nmse | inherited nmse | gain | operations "
	      "|\n|---|--:|--:|--:|--:|--:|\n",
	      out);
	for (int i = 0; i < doc->n_origins && i < NAMED; i++) {
		const vn_checkpoint *p = &doc->checkpoint[doc->origin[i]];
		vn_markdown_say(out, SHOWN, 1, "| %s", vn_label(p, label));
		write_number(out, "%.3g", vn_local_shown(p), !isnan(vn_local_shown(p)));
		write_number(out, "%.2e", vn_local_nmse(p), !isnan(vn_local_nmse(p)));
		write_number(out, "%.2e", p->replay.inherited, p->replayed && !isnan(p->replay.inherited));
		write_number(out, "%.2g", p->replay.gain, p->replayed && !isnan(p->replay.gain));
		write_number(out, "%.0f", p->replay.span, p->replayed);
		fputs(" |\n", out);
	}
	fputc('\n', out);
	print_titled("Cleared", "Cleared", INT_MAX, SHOWN, doc->cleared, out);
}

static void print_origins(const vn_document *doc, FILE *out)
{
	char label[VN_LABEL];
	if (doc->n_origins == 0)
		return;
	vn_say(out, "- **%s** ", doc->n_origins > 1 ? "Origins" : "Origin");
	for (int i = 0; i < doc->n_origins && i < NAMED; i++)
		vn_markdown_say(out, SHOWN, 0, i ? ", %s" : "%s", vn_label(&doc->checkpoint[doc->origin[i]], label));
	if (doc->n_origins > NAMED)
		fprintf(out, " and %d more", doc->n_origins - NAMED);
	fputs(": ", out);
	vn_markdown_text(out, vn_document_text(doc->origins_are), 0);
	fputc('\n', out);
	print_titled("Explained", "Explained", LINES, SHOWN, doc->explained, out);
	if (json_is_true(doc->replayed))
		replayed_origins(doc, out);
}

/* The first divergence and the limit it breaks. */
static void print_beginning(const vn_document *doc, int first, FILE *out)
{
	char                 text[VN_WORDS], label[VN_LABEL];
	const vn_checkpoint *p = &doc->checkpoint[first];
	const json_t        *profile = json_object_get(vn_document_detail(doc, first), "profile");
	print_item(out, doc->divergence >= 0 ? "First divergence" : "First finding", vn_label(p, label));
	item_of(out, p->worst >= 0 ? "Broken rule" : "Finding", vn_judge_say_failure(p, text), VN_WORDS);
	if (vn_judge_worst_why(p))
		print_item(out, "Why this rule", vn_judge_worst_why(p));
	print_titled("Profile", "Profile", LINES, SHOWN, json_object_get(profile, "words"), out);
	print_origins(doc, out);
}

static void print_warnings(const vn_document *doc, FILE *out)
{
	print_titled("Warning", "Warning", 8, SHOWN, doc->warnings, out);
}

/* Do warnings alone make it fail? */
static bool is_strict(const vn_document *doc)
{
	return json_is_true(json_object_get(doc->strict, "decided"));
}

static void first_lines(const vn_document *doc, FILE *out)
{
	const int first = doc->first;
	vn_say(out, "### %s vernier: ", doc->within ? "\u2705" : "\u274c");
	vn_markdown_text(out, vn_document_text(doc->verdict_words), 0);
	fputs("\n\n", out);
	vn_markdown_text(out, vn_document_text(doc->summary), 0);
	fputs("\n\n", out);
	vn_weights_markdown(doc->weights, out);
	if (is_strict(doc))
		print_warnings(doc, out);
	if (first >= 0)
		print_beginning(doc, first, out);
	else
		print_origins(doc, out);
	print_titled("Next", "Then", LINES, VN_WORDS, doc->next, out);
	print_titled("Baseline", "Better", NAMED, SHOWN, doc->changes, out);
	print_titled("Measured", "Measured", LINES, SHOWN, doc->measured, out);
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

/* Collapsible details of one checkpoint. */
static void print_folded(const vn_document *doc, int x, FILE *out)
{
	char           label[VN_LABEL];
	vn_text_stream lines;

	vn_report_full(doc, x, false, false, vn_alloc_stream(&lines));
	open_fold(out, doc->detail[x] == doc->divergence ? "First divergence" : "Origin",
	          vn_label(&doc->checkpoint[doc->detail[x]], label));
	vn_markdown_fence(out, vn_alloc_streamed(&lines));
	free(lines.text);
	fputs("\n</details>\n\n", out);
}

static void print_details(const vn_document *doc, FILE *out)
{
	size_t used = 0;
	for (int i = 0; i < vn_document_lines(doc->divergences); i++) {
		const int      point = doc->detail[i];
		vn_text_stream fold;
		if (point != doc->divergence && !doc->checkpoint[point].origin)
			continue;
		print_folded(doc, i, vn_alloc_stream(&fold));
		vn_alloc_streamed(&fold);
		if (used + fold.bytes < DETAIL_ROOM) {
			used += fold.bytes;
			fwrite(fold.text, 1, fold.bytes, out);
		}
		free(fold.text);
	}
}

static void fact_of(FILE *out, const char *key, const char *ref, const char *cand, size_t most)
{
	vn_markdown_say(out, FACT, 1, "| %s", key);
	vn_markdown_say(out, most, 1, " | %s | %s |\n", ref ? ref : "-", cand ? cand : "-");
}

static void print_fact(FILE *out, const char *key, const char *ref, const char *cand)
{
	fact_of(out, key, ref, cand, FACT);
}

static void print_facts(const json_t *ref, const json_t *cand, FILE *out)
{
	json_t     *r = json_object_get(ref, "run"), *d = json_object_get(cand, "run"), *value;
	const char *key;

	json_object_foreach(r, key, value)
	{
		print_fact(out, key, json_string_value(value), json_string_value(json_object_get(d, key)));
	}
	json_object_foreach(d, key, value)
	{
		if (!json_object_get(r, key))
			print_fact(out, key, NULL, json_string_value(value));
	}
}

static void print_runs(const vn_document *doc, FILE *out)
{
	const json_t *r = doc->reference, *d = doc->candidate;
	open_fold(out, "Runs, limits and floor", NULL);
	print_item(out, "Limits", vn_document_limits(doc));
	print_item(out, "Chosen", vn_document_member(doc->limits, "chosen"));
	if (!json_is_true(doc->bitwise))
		print_item(out, "Floor (" VN_FLOOR_MEANS ")",
		           json_is_string(doc->floor) ? vn_document_text(doc->floor) : "none");
	print_titled("Note", "Note", 8, SHOWN, doc->notes, out);
	if (!is_strict(doc))
		print_warnings(doc, out);
	fputs("\n| | reference | candidate |\n|---|---|---|\n", out);
	fact_of(out, "path", vn_document_member(r, "path"), vn_document_member(d, "path"), PATHS);
	print_fact(out, "weights", vn_document_member(r, "weights"), vn_document_member(d, "weights"));
	print_facts(r, d, out);
	fputs("\n</details>\n", out);
}

/* ---- the table --------------------------------------------------------------------- */

static bool print_row(const void *ctx, int i, FILE *out)
{
	const vn_document   *doc = ctx;
	const vn_checkpoint *p = &doc->checkpoint[i];
	char                 label[VN_LABEL], text[VN_WORDS];
	double               ratio = 0;
	const bool           has_ratio = p->m.n && vn_ratio_of(doc, p, &ratio);
	if (!p->fails)
		return false;
	vn_markdown_say(out, SHOWN, 1, "| %s", vn_label(p, label));
	print_metric(out, "%.2e", p, VN_M_NMSE);
	write_number(out, ratio < 1000 ? "%.2f" : "%.1e", ratio, has_ratio);
	print_metric(out, "%.6f", p, VN_M_COSINE);
	print_metric(out, "%.2e", p, VN_M_MAX_ABS);
	vn_markdown_say(out, VN_WORDS, 1, " | %s |\n", vn_judge_say_failure(p, text));
	return true;
}

/* A table of the failures, in at most `room` bytes. */
static void print_table(const vn_document *doc, size_t room, FILE *out)
{
	static const char head[] =
		"| checkpoint | nmse | \u00d7 floor | cosine | max abs | limit broken |\n|---|--:|--:|--:|--:|---|\n";
	const size_t taken = sizeof head + TABLE_END;
	int          left = doc->n_fails;
	if (left == 0)
		return;
	fputs(head, out);
	vn_markdown_rows(out, room > taken ? room - taken : 0, print_row, doc, doc->n, &left);
	if (left)
		fprintf(out, "\n%d more checkpoints are outside. They do not fit into one comment.\n", left);
	fputc('\n', out);
}

vn_status vn_report_markdown(const vn_document *doc, const vn_report_options *o, FILE *out, vn_error *err)
{
	vn_text_stream top, tail;
	(void)o;
	(void)err;
	first_lines(doc, vn_alloc_stream(&top));
	print_details(doc, vn_alloc_stream(&tail));
	print_runs(doc, tail.file);
	vn_alloc_streamed(&top);
	fwrite(top.text, 1, top.bytes, out);
	vn_alloc_streamed(&tail);
	print_table(doc, top.bytes + tail.bytes < ROOM ? ROOM - top.bytes - tail.bytes : 0, out);
	fwrite(tail.text, 1, tail.bytes, out);
	VN_FREE(top.text, tail.text);
	return VN_OK;
}
