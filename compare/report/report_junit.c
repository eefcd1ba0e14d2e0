/* report_junit.c: a comparison as JUnit XML, which CI systems show next to other tests: one suite,
 * one testcase per checkpoint.
 *
 * There is no standard; this uses what GitLab, Jenkins and the GitHub reporters all read
 * (specs/usage.md): testsuites, testsuite with its counts and properties, testcase with classname,
 * name and time, failure and skipped with message and type. A name is unique in its suite, and a
 * checkpoint has the same name in every run, by which CI systems recognise it.
 */
#include "compare/judge/baseline.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/check_words.h"
#include "compare/replay/replay_words.h"
#include "compare/report/words.h"
#include "compare/text/markup.h"
#include "compare/report/report.h"
#include "capture/file/output.h"
#include "libref/base/say.h"

#include <stdlib.h>

static void print_attribute(FILE *out, const char *key, const char *value)
{
	vn_say(out, " %s=\"", key);
	vn_xml_text(out, value);
	fputc('"', out);
}

static void print_property(FILE *out, const char *prefix, const char *key, const char *value)
{
	char name[VN_FACT_KEY + 16];
	snprintf(name, sizeof name, "%s%s", prefix, key);
	fputs("      <property", out);
	print_attribute(out, "name", name);
	print_attribute(out, "value", value);
	fputs("/>\n", out);
}

static void print_recording(FILE *out, const char *prefix, const vn_recording *r)
{
	const vn_facts *f = vn_recording_run(r);
	print_property(out, prefix, "path", vn_recording_path(r));
	print_property(out, prefix, "weights", vn_recording_provenance(r));
	for (int i = 0; i < f->n; i++)
		print_property(out, prefix, f->fact[i].key, f->fact[i].value);
}

static void print_properties(const vn_comparison *c, const vn_report_options *o, FILE *out)
{
	char      label[VN_LABEL], counts[VN_WORDS];
	const int first = vn_first_failure(c);
	fputs("    <properties>\n", out);
	print_property(out, "", "verdict", vn_report_say_verdict(c));
	print_property(out, "", "summary", vn_report_say_counts(c, counts));
	if (first >= 0)
		print_property(out, "", "first_divergence", vn_label(&c->result.checkpoint[first], label));
	for (int i = 0; i < c->result.n_origins; i++)
		print_property(out, "", "origin", vn_label(&c->result.checkpoint[c->result.origins[i]], label));
	print_property(out, "", "limits", c->request.limits->path);
	print_property(out, "", "limits_chosen", o->limits_chosen);
	char floor[sizeof c->result.floor_from + 64];
	if (*c->result.floor_from)
		snprintf(floor, sizeof floor, "%s (" VN_FLOOR_MEANS ")", c->result.floor_from);
	else
		strcpy(floor, "none");
	print_property(out, "", "floor", floor);
	if (c->request.options->baseline)
		print_property(out, "", "baseline", c->request.options->baseline);
	for (int i = 0; i < c->result.warnings.n; i++)
		print_property(out, "", "warning", c->result.warnings.line[i]);
	print_recording(out, "reference.", c->opened.ref);
	print_recording(out, "candidate.", c->opened.cand);
	fputs("    </properties>\n", out);
}

/* Full details for one checkpoint that has them; for others only the checks they broke. */
static vn_status failure_text(const vn_comparison *c, const vn_story *s, int point, FILE *out, vn_error *err)
{
	const vn_checkpoint    *p = &c->result.checkpoint[point];
	const vn_report_detail *x = vn_story_find(s, point);
	char                   *text = NULL, words[VN_WORDS];
	size_t                  n = 0;
	FILE                   *to = open_memstream(&text, &n);
	if (!to)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a report");
	if (x)
		vn_report_full(c, x, false, to);
	for (int i = 0; !x && i < p->n_checks; i++) {
		const vn_check k = vn_check_at(p, i);
		if (!k.holds)
			vn_say(to, "%s\n", vn_judge_say_check(p, &k, words));
	}
	if (!x && p->replayed)
		vn_say(to, "replayed: %s\n", vn_replay_say_result(c, p, words));
	if (p->worst < 0) /* repeated in the text, because GitLab shows no message */
		vn_say(to, "%s\n", vn_judge_say_failure(p, words));
	if (!vn_text_close(to, &text))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a report");
	vn_xml_lines(out, text);
	free(text);
	return VN_OK;
}

/* A pass without numbers: judged while it was recorded, or equal by its digests. */
static bool known_good(const vn_checkpoint *p)
{
	return p->status == VN_AGREED || p->status == VN_EQUAL;
}

/* Not a pass: allowed and not measured, outside as in the baseline, or outside by
 * accumulated error only. */
static bool let_go(const vn_checkpoint *p)
{
	return !p->fails && !known_good(p) &&
	       (p->status == VN_OUTSIDE || p->status == VN_ACCUMULATED || p->status > VN_UNLIMITED);
}

static vn_status print_testcase(const vn_comparison *c, const vn_story *s, int point, FILE *out, vn_error *err)
{
	const vn_checkpoint *p = &c->result.checkpoint[point];
	char                 label[VN_LABEL], class[48], words[VN_WORDS], said[VN_WORDS + 16];
	vn_status            st = VN_OK;
	if (p->layer >= 0)
		snprintf(class, sizeof class, "step%d.layer%d", p->step, p->layer);
	else
		snprintf(class, sizeof class, "step%d", p->step);
	fputs("    <testcase", out);
	print_attribute(out, "classname", class);
	print_attribute(out, "name", vn_label(p, label));
	fputs(" time=\"0\"", out);
	if (p->fails) {
		fputs(">\n      <failure", out);
		print_attribute(out, "message", vn_judge_say_failure(p, words));
		print_attribute(out, "type", vn_checkpoint_status_text(p->status));
		fputc('>', out);
		st = failure_text(c, s, point, out, err);
		fputs("</failure>\n    </testcase>\n", out);
	} else if (let_go(p)) {
		fputs(">\n      <skipped", out);
		const char *what = p->since > VN_UNCHANGED       ? vn_judge_since_text(p->since)
		                   : p->status == VN_ACCUMULATED ? vn_checkpoint_status_text(p->status)
		                                                 : NULL;
		if (what)
			snprintf(said, sizeof said, "%s: %s", what, vn_judge_say_failure(p, words));
		print_attribute(out, "message", what ? said : vn_judge_say_failure(p, words));
		fputs("/>\n    </testcase>\n", out);
	} else if (known_good(p) && p->detail) {
		fputs(">\n      <system-out>", out);
		vn_xml_text(out, p->detail);
		fputs("</system-out>\n    </testcase>\n", out);
	} else {
		fputs("/>\n", out);
	}
	return st;
}

/* Under --strict, the absence of warnings is a test of its own. */
static void print_warnings(const vn_comparison *c, FILE *out)
{
	char said[64];
	fputs("    <testcase classname=\"strict\" name=\"warnings\" time=\"0\"", out);
	if (c->result.warnings.n) {
		snprintf(said, sizeof said, "--strict: %d warning%s", c->result.warnings.n,
		         c->result.warnings.n == 1 ? "" : "s");
		fputs(">\n      <failure", out);
		print_attribute(out, "message", said);
		fputs(" type=\"warning\">", out);
		for (int i = 0; i < c->result.warnings.n; i++) {
			vn_xml_text(out, c->result.warnings.line[i]);
			fputc('\n', out);
		}
		fputs("</failure>\n    </testcase>\n", out);
	} else {
		fputs("/>\n", out);
	}
}

static void print_counts(const vn_comparison *c, FILE *out)
{
	const bool strict = c->request.options->strict;
	int        skipped = 0;
	for (int i = 0; i < c->result.n_checkpoints; i++)
		skipped += let_go(&c->result.checkpoint[i]);
	fprintf(out, " tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"%d\" time=\"0\"",
	        c->result.n_checkpoints + strict, c->result.n_fails + (strict && c->result.warnings.n), skipped);
}

vn_status vn_report_junit(const vn_comparison *c, const vn_story *s, const vn_report_options *o, FILE *out,
                          vn_error *err)
{
	vn_status st = VN_OK;
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"vernier compare\"", out);
	print_counts(c, out);
	fputs(">\n  <testsuite", out);
	print_attribute(out, "name", vn_recording_path(c->opened.cand));
	print_counts(c, out);
	fputs(">\n", out);
	print_properties(c, o, out);
	for (int i = 0; !st && i < c->result.n_checkpoints; i++)
		st = print_testcase(c, s, i, out, err);
	if (c->request.options->strict)
		print_warnings(c, out);
	fputs("  </testsuite>\n</testsuites>\n", out);
	return st;
}
