/* compare_pair.c: one recording judged by another: verdict, reports, messages. */
#include "compare/compare_line.h"

#include "compare/result/next.h"
#include "compare/result/words.h"
#include "capture/file/output.h"

#include "capture/base/warnings.h"

#include "libref/base/alloc.h"
#include "libref/base/intern.h"
#include "libref/base/say.h"
#include "libref/base/trouble.h"

#include <stdlib.h>

/* Writes the reports of a comparison that has ended. */
static vn_status write_reports(const vn_compare_line *k, vn_comparison *c, const char *chosen, vn_document *doc,
                               vn_error *err)
{
	vn_output out;
	int       tells = 0;
	for (int i = 0; i < k->n_reports; i++)
		tells = k->report[i].form->tells > tells ? k->report[i].form->tells : tells;
	vn_status st = vn_document_of(&c->opened, &c->result, tells, chosen, doc, err);
	for (int i = 0; !st && i < k->n_reports; i++) {
		const char             *path = k->report[i].path;
		const vn_report_options o = { .colour = !path && vn_colours((vn_colour_choice)k->colour),
			                          .all = k->all,
			                          .path = path };
		if (k->absent && !path) /* only a file of its own says that all is missing or extra */
			continue;
		if (!(st = vn_compare_check_apart(k, i, err)) &&
		    !(st = vn_output_open(&out, path, VN_PLACE_REPORT, k->force, err)))
			st = vn_output_close(&out, k->report[i].form->write(doc, &o, out.file, err), err);
	}
	return st;
}

static vn_status run_comparison(const vn_compare_line *k, vn_comparison *c, vn_document *doc, vn_error *err)
{
	char      chosen[128];
	vn_status st;
	if ((!k->absent && (st = vn_compare_check_itself(k, &c->result, err))) || (st = vn_compare_check_places(k, err)) ||
	    (st = vn_compare_judge(k, c, chosen, sizeof chosen, err)))
		return st;
	return write_reports(k, c, chosen, doc, err);
}

/* A CSV has no place for notes. */
static bool all_csv(const vn_compare_line *k)
{
	int n = 0;
	while (n < k->n_reports && k->report[n].form->write == vn_report_csv)
		n++;
	return n && n == k->n_reports;
}

/* Prints warnings to stderr, unless the text report on stdout shows them. */
static void print_warnings(const vn_compare_line *k, const vn_result *r)
{
	const bool shown = !k->absent && vn_compare_shows_text(k);
	vn_warnings_begin();
	if (shown)
		fflush(stdout); /* keeps stdout before stderr */
	for (int i = 0; i < r->remarks.warnings.n; i++)
		if (shown)
			vn_warned("%s", r->remarks.warnings.line[i]);
		else
			vn_warn(k->name, "%s", r->remarks.warnings.line[i]);
	vn_warnings_end(k->name, r->verdict.strict, 0);
}

/* Prints the verdict and the reports written, in one line, when no report goes to stdout. A line
 * that lacks memory is not printed: the program then ends with trouble (main.c). */
static void say_written(const vn_compare_line *k, const vn_document *doc)
{
	const char *start = vn_document_text(doc->start);
	const bool  why = vn_document_lines(doc->explained) > 0;
	vn_error    err;

	if (vn_trouble_since(0, k->name, &err))
		return;
	vn_say(stdout, "%s: %s%s%s%s%s%s ", vn_document_text(doc->verdict_words), vn_document_text(doc->summary),
	       *start ? " " : "", start, why ? " Explained: " : "", vn_document_line(doc->explained, 0), why ? "." : "");
	vn_compare_print_files(k);
}

/* A program that reads stdout learns why there is no verdict. Report files are written only for a
 * comparison. */
static void report_refused(const vn_compare_line *k, const vn_comparison *c, const char *why)
{
	vn_output                       out;
	vn_error                        err;
	VN_ENDS(vn_lines_free) vn_lines next = { 0 };

	vn_next_after_refusal(&c->opened, &c->result, &next);
	for (int i = 0; i < k->n_reports; i++) {
		if (k->report[i].path || k->report[i].form->write != vn_report_json ||
		    vn_output_open(&out, NULL, VN_PLACE_REPORT, false, &err))
			continue;
		const vn_status written = vn_report_refused(why, &c->result.remarks.refusals, &next, out.file, &err);
		vn_output_close(&out, written, &err);
	}
}

static const char *recorder_of(const vn_recording *r)
{
	char text[VN_RECORDER];
	return *vn_report_say_recorder(r, text) ? vn_alloc_check(vn_intern(text)) : NULL;
}

static const char *words_of(const vn_compare_line *k, const vn_result *r, vn_status st, int first)
{
	char words[VN_LABEL + 40], label[VN_LABEL];

	if (k->absent && !st)
		snprintf(words, sizeof words, "only in the %s%s", k->absent == VN_NO_CANDIDATE ? "reference" : "candidate",
		         r->verdict.within ? " (allowed)" : "");
	else if (st)
		snprintf(words, sizeof words, "not compared");
	else if (!r->verdict.within && first >= 0)
		snprintf(words, sizeof words, "first: %s", vn_label(&r->checkpoints.of[first], label));
	else if (r->verdict.strict)
		snprintf(words, sizeof words, "%d warning%s (--strict)", r->remarks.warnings.n,
		         r->remarks.warnings.n == 1 ? "" : "s");
	else
		snprintf(words, sizeof words, "%d checkpoint%s", r->checkpoints.n, r->checkpoints.n == 1 ? "" : "s");
	return vn_alloc_check(vn_intern(words));
}

vn_together_pair vn_compare_pair(const vn_compare_line *k)
{
	VN_ENDS(vn_comparison_close) vn_comparison c = { .opened.request.options = &k->how.o };
	vn_error                                   err = { "" };
	char                                       again[VN_SHELL_LINE];
	VN_ENDS(vn_document_finish) vn_document    doc = { .first = -1 };

	vn_compare_again(k, again);
	c.opened.request.again = *again ? again : NULL;
	const vn_status st = run_comparison(k, &c, &doc, &err);
	if (!st)
		print_warnings(k, &c.result);
	if (st) {
		vn_lines_print_refusals(&c.result.remarks.refusals, "", "--format json lists them", stderr);
		vn_say(stderr, "vernier %s: %s%s\n", k->name, err.text, st == VN_ERR_DAMAGED ? " (--allow digest)" : "");
	}
	if (st || all_csv(k)) {
		VN_ENDS(vn_lines_free) vn_lines given = { 0 };
		vn_compare_settings(k, &given);
		vn_options_print_notes(k->name, &given);
	}
	if (st && c.result.remarks.refusals.n)
		report_refused(k, &c, err.text);
	if (!st && !k->quiet && !k->absent && vn_compare_all_to_files(k))
		say_written(k, &doc);
	const vn_together_pair o = {
		.status = st ? 2 : !c.result.verdict.within,
		.again = st == VN_ERR_NOMEM || st == VN_ERR_INTERRUPTED,
		.words = words_of(k, &c.result, st, doc.first),
		.by = { k->absent == VN_NO_REFERENCE ? NULL : recorder_of(c.opened.ref),
		        k->absent == VN_NO_CANDIDATE ? NULL : recorder_of(c.opened.cand) },
	};
	return o;
}
