/* compare_pair.c: one recording judged by another: limits, verdict, reports, messages. */
#include "compare/compare_line.h"

#include "compare/explain/explain_words.h"
#include "compare/report/words.h"
#include "capture/file/output.h"

#include "capture/base/warnings.h"
#include "capture/recording/derive.h"

#include "libref/base/text.h"
#include "libref/base/trouble.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The shipped limits for quantised weights against unquantised ones: quantisation costs more than any choice of
 * precision. */
static const char *block_limits(const vn_compare_line *k, const vn_comparison *c)
{
	const char *ref = vn_recording_format(c->opened.ref), *cand = vn_recording_format(c->opened.cand);
	return (k->how.o.allow & VN_ALLOW_WEIGHTS) && cand && !(ref && strcmp(ref, cand) == 0)
	           ? vn_limits_of_blocks(cand, vn_recording_family(c->opened.cand))
	           : NULL;
}

static vn_status read_limits(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	if (k->how.o.bitwise) {
		snprintf(chosen, room, "--bitwise");
		return vn_limits_bitwise(&c->request.limits, err);
	}
	if (k->limits) {
		snprintf(chosen, room, "--limits");
		return vn_limits_open(k->limits, &c->request.limits, err);
	}
	/* Without a candidate, use the reference's precision, weights and model. */
	const char         *who = k->absent == VN_NO_CANDIDATE ? "reference" : "candidate";
	const vn_recording *by = k->absent == VN_NO_CANDIDATE ? c->opened.ref : c->opened.cand;
	const char         *precision = vn_facts_get(vn_recording_run(by), "precision");
	const char         *blocks = block_limits(k, c);
	snprintf(chosen, room, blocks ? "the %s's weights are %.60s" : "the %s's precision is %.40s", who,
	         blocks      ? vn_recording_format(c->opened.cand)
	         : precision ? precision
	                     : "");
	vn_text_clean(chosen, room); /* it comes from strangers */
	const vn_status st = blocks ? vn_limits_shipped(blocks, &c->request.limits, err)
	                            : vn_limits_own(precision ? precision : "", vn_recording_family(by), &c->request.limits,
	                                            err);
	return st ? vn_context(err, st, "%s", k->cand) : VN_OK;
}

bool vn_colours(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(STDOUT_FILENO) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

/* One of the reports. */
typedef struct one_report {
	const vn_report_form *form;
	const vn_comparison  *c;
	const vn_story       *story;
	vn_report_options     o;
} one_report;

static vn_status write_report(const void *context, FILE *out, vn_error *err)
{
	const one_report *r = context;
	return r->form->write(r->c, r->story, &r->o, out, err);
}

/* Two names may be one file (r.json and ./r.json), which shows when the first report is written. */
vn_status vn_compare_check_apart(const vn_compare_line *k, int i, vn_error *err)
{
	for (int j = 0; j < i; j++)
		if (vn_same_file(k->report[i].path, k->report[j].path))
			return vn_fail(err, VN_ERR_USAGE,
			               "%s: is the file of another report, %s; give each report a file of its own",
			               k->report[i].path, k->report[j].path);
	return VN_OK;
}

static vn_status write_reports(const vn_compare_line *k, vn_comparison *c, const char *chosen, vn_error *err)
{
	vn_story  story;
	vn_status st;
	int       tells = 0;
	for (int i = 0; i < k->n_reports; i++)
		tells = k->report[i].form->tells > tells ? k->report[i].form->tells : tells;
	st = vn_story_of(c, tells, &story, err);
	for (int i = 0; !st && i < k->n_reports; i++) {
		const one_report r = {
			.form = k->report[i].form,
			.c = c,
			.story = &story,
			.o = { .colour = !k->report[i].path && vn_colours(), .all = k->all, .limits_chosen = chosen }
		};
		if (!(st = vn_compare_check_apart(k, i, err)))
			st = vn_output_report(k->report[i].path, k->force, write_report, &r, err);
	}
	vn_story_free(&story);
	return st;
}

int vn_compare_files_of(const vn_compare_line *k, int i, char *const **file)
{
	*file = k->set ? k->set[i].file : &k->many[i];
	return k->set ? k->set[i].n : 1;
}

/* With --force a report may replace an older report, but never one of its own inputs. */
static vn_status check_place(const vn_compare_line *k, const char *path, vn_error *err)
{
	const char *const read[] = { k->ref, k->cand, k->floor, k->limits, k->how.o.baseline };
	char *const      *file;
	bool              input = false;

	for (int i = 0; i < k->n_many; i++)
		for (int j = vn_compare_files_of(k, i, &file) - 1; j >= 0; j--)
			input = input || vn_same_file(path, file[j]);
	for (size_t i = 0; i < sizeof read / sizeof *read; i++)
		input = input || vn_same_file(path, read[i]);
	return input ? vn_fail(err, VN_ERR_USAGE,
	                       "%s: is an input of this comparison; a report cannot replace it: give -o another name", path)
	             : vn_place_check(path, VN_PLACE_REPORT, k->force, err);
}

/* A path given twice, or a link to the other side, always agrees. Two rows of one batch are two different runs. */
vn_status vn_compare_check_itself(const vn_compare_line *k, vn_comparison *c, vn_error *err)
{
	const char *twice = NULL;
	for (int i = 0; i < k->n_ranks && !twice && k->sides.batch_row == k->sides.ref_batch_row; i++) {
		const char *cand = k->n_ranks > 1 ? k->ranks[i] : k->cand;
		twice = vn_same_file(k->ref, cand) ? cand : NULL;
	}
	if (twice && !(k->how.o.allow & VN_ALLOW_ITSELF))
		return vn_fail(err, VN_ERR_USAGE,
		               "%s is the same file as the reference, %s: a recording always agrees with "
		               "itself (--allow itself compares it all the same)",
		               twice, k->ref);
	if (twice)
		vn_lines_add(&c->result.warnings,
		             "allowed (itself): %s is the same file as the reference: the comparison shows nothing", twice);
	return VN_OK;
}

/* Checks the output paths before the comparison, which may take an hour. */
vn_status vn_compare_check_places(const vn_compare_line *k, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; i < k->n_reports && !st; i++)
		if (k->report[i].path)
			st = check_place(k, k->report[i].path, err);
	return st;
}

/* One side is absent: everything on the other is missing or extra. */
static vn_status judge_alone(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	const bool candidate = k->absent == VN_NO_REFERENCE;
	vn_status  st;

	if ((st = vn_recording_open(candidate ? k->cand : k->ref, candidate ? &c->opened.cand : &c->opened.ref, err)) ||
	    (st = vn_derive_nothing(candidate ? k->ref : k->cand, candidate ? &c->opened.ref : &c->opened.cand, err)) ||
	    (st = read_limits(k, c, chosen, room, err)))
		return st;
	return vn_compare_alone(c, err);
}

vn_status vn_compare_open(const vn_compare_line *k, vn_comparison *c, vn_recording *const opened[2], char *chosen,
                          size_t room, vn_error *err)
{
	vn_sides  sides = k->sides;
	vn_status st;
	sides.ref = k->ref;
	sides.cand = k->n_ranks > 1 ? (const char *const *)k->ranks : &k->cand;
	sides.n_cand = k->n_ranks;
	sides.floor = k->floor;
	if (opened)
		memcpy(sides.opened, opened, sizeof sides.opened);
	st = vn_sides_open(&sides, c, err);
	return st ? st : read_limits(k, c, chosen, room, err);
}

vn_status vn_compare_judge(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	vn_status st;
	if (k->absent)
		return judge_alone(k, c, chosen, room, err);
	st = vn_compare_open(k, c, NULL, chosen, room, err);
	return st ? st : vn_compare(c, err);
}

static vn_status run_comparison(const vn_compare_line *k, vn_comparison *c, vn_error *err)
{
	char      chosen[128];
	vn_status st;
	if ((st = vn_compare_check_itself(k, c, err)) || (st = vn_compare_check_places(k, err)) ||
	    (st = vn_compare_judge(k, c, chosen, sizeof chosen, err)))
		return st;
	return write_reports(k, c, chosen, err);
}

/* Reports a pair with one file absent: everything in the other file is missing or extra, and each report with a
 * file of its own says so. */
static vn_status run_alone(const vn_compare_line *k, vn_comparison *c, vn_error *err)
{
	vn_compare_line files = *k;
	char            chosen[128];
	vn_status       st;

	files.n_reports = 0;
	for (int i = 0; i < k->n_reports; i++)
		if (k->report[i].path) {
			if ((st = check_place(k, k->report[i].path, err)))
				return st;
			files.report[files.n_reports++] = k->report[i];
		}
	if ((st = vn_compare_judge(k, c, chosen, sizeof chosen, err)))
		return st;
	return write_reports(&files, c, chosen, err);
}

bool vn_compare_shows_text(const vn_compare_line *k)
{
	for (int i = 0; i < k->n_reports; i++)
		if (!k->report[i].path && k->report[i].form->write == vn_report_text)
			return true;
	return false;
}

/* Prints warnings to stderr, unless the text report on stdout shows them. */
static void print_warnings(const vn_compare_line *k, const vn_comparison *c)
{
	const bool shown = !k->absent && vn_compare_shows_text(k);
	vn_warnings_begin();
	if (shown)
		fflush(stdout); /* keeps stdout before stderr */
	for (int i = 0; i < c->result.warnings.n; i++)
		if (shown)
			vn_warned("%s", c->result.warnings.line[i]);
		else
			vn_warn(k->name, "%s", c->result.warnings.line[i]);
	vn_warnings_end(k->name, c->result.strict, 0);
}

bool vn_compare_all_to_files(const vn_compare_line *k)
{
	for (int i = 0; i < k->n_reports; i++)
		if (!k->report[i].path)
			return false;
	return true;
}

void vn_compare_print_files(const vn_compare_line *k)
{
	printf("Written:");
	for (int i = 0; i < k->n_reports; i++)
		printf("%s %s", i ? "," : "", k->report[i].path);
	putchar('\n');
}

/* Prints the verdict and the reports written, in one line, when no report goes to stdout. A line that lacks memory is
 * not printed: the program then ends with trouble (main.c). */
static void say_written(const vn_compare_line *k, const vn_comparison *c)
{
	char     counts[VN_WORDS], start[VN_WORDS];
	vn_lines why = { 0 };
	vn_error err;

	vn_say_start(c, start);
	vn_say_explanations(c, &why);
	if (!vn_trouble_since(0, k->name, &err)) {
		printf("%s: %s%s%s%s%s%s ", vn_say_verdict(c), vn_say_counts(c, counts), *start ? " " : "", start,
		       why.n ? " Explained: " : "", why.n ? why.line[0] : "", why.n ? "." : "");
		vn_compare_print_files(k);
	}
	vn_lines_free(&why);
}

typedef struct refused {
	const vn_comparison *c;
	const char          *why;
} refused;

static vn_status write_refused(const void *context, FILE *out, vn_error *err)
{
	const refused *r = context;
	return vn_report_refused(r->c, r->why, out, err);
}

/* A program that reads stdout learns why there is no verdict. Files are written of a comparison only. */
static void report_refused(const vn_compare_line *k, const vn_comparison *c, const char *why)
{
	vn_error err;

	for (int i = 0; i < k->n_reports; i++)
		if (!k->report[i].path && k->report[i].form->write == vn_report_json)
			vn_output_report(NULL, false, write_refused, &(refused) { c, why }, &err);
}

vn_pair_outcome vn_compare_pair(const vn_compare_line *k)
{
	vn_comparison   c = { .request.options = &k->how.o };
	vn_error        err = { "" };
	char            label[VN_LABEL], again[VN_SHELL_LINE];
	vn_pair_outcome o = { 0 };

	vn_compare_again(k, again);
	c.request.again = *again ? again : NULL;
	const vn_status st = k->absent ? run_alone(k, &c, &err) : run_comparison(k, &c, &err);
	if (!st)
		print_warnings(k, &c);
	if (st) {
		vn_lines_print_refusals(&c.result.refusals, "", "--format json lists them", stderr);
		fprintf(stderr, "vernier %s: %s%s\n", k->name, err.text, st == VN_ERR_DAMAGED ? " (--allow digest)" : "");
	}
	if (st && c.result.refusals.n)
		report_refused(k, &c, err.text);
	o.status = st ? 2 : c.result.within ? 0 : 1;
	o.why = st;
	if (!st && !k->quiet && !k->absent && vn_compare_all_to_files(k))
		say_written(k, &c);
	if (k->absent != VN_NO_REFERENCE)
		vn_say_recorder(c.opened.ref, o.by[0]);
	if (k->absent != VN_NO_CANDIDATE)
		vn_say_recorder(c.opened.cand, o.by[1]);
	const int first = o.status == 1 ? vn_first_failure(&c) : -1;
	if (k->absent && !st)
		snprintf(o.words, sizeof o.words, "only in the %s%s", k->absent == VN_NO_CANDIDATE ? "reference" : "candidate",
		         o.status ? "" : " (allowed)");
	else if (first >= 0)
		snprintf(o.words, sizeof o.words, "first: %s", vn_label(&c.result.point[first], label));
	else if (c.result.strict)
		snprintf(o.words, sizeof o.words, "%d warning%s (--strict)", c.result.warnings.n,
		         c.result.warnings.n == 1 ? "" : "s");
	else
		snprintf(o.words, sizeof o.words,
		         st                       ? "not compared"
		         : c.result.n_points == 1 ? "%d checkpoint"
		                                  : "%d checkpoints",
		         c.result.n_points);
	vn_comparison_close(&c);
	return o;
}
