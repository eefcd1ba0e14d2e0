/* report_junit.c: a comparison as JUnit XML, which CI systems show next to other tests: one suite,
 * one testcase per checkpoint, and one for each criterion.
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
#include "compare/result/words.h"
#include "compare/text/markup.h"
#include "compare/report/report.h"
#include "libref/base/alloc.h"
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

static void print_recording(FILE *out, const char *prefix, json_t *r)
{
	const char *key;
	json_t     *value;
	print_property(out, prefix, "path", vn_document_member(r, "path"));
	print_property(out, prefix, "weights", vn_document_member(r, "weights"));
	json_object_foreach(json_object_get(r, "run"), key, value)
	{
		print_property(out, prefix, key, vn_document_text(value));
	}
}

static void print_floor(const vn_document *doc, FILE *out)
{
	char floor[320] = "none"; /* longer than any; a report that was edited may be cut */
	if (json_is_string(doc->floor))
		snprintf(floor, sizeof floor, "%.240s (" VN_FLOOR_MEANS ")", vn_document_text(doc->floor));
	print_property(out, "", "floor", floor);
}

static void print_properties(const vn_document *doc, FILE *out)
{
	char label[VN_LABEL];
	fputs("    <properties>\n", out);
	print_property(out, "", "verdict", vn_document_text(doc->verdict_words));
	print_property(out, "", "summary", vn_document_text(doc->summary));
	if (doc->first >= 0)
		print_property(out, "", "first_divergence", vn_label(&doc->checkpoint[doc->first], label));
	for (int i = 0; i < doc->n_origins; i++)
		print_property(out, "", "origin", vn_label(&doc->checkpoint[doc->origin[i]], label));
	print_property(out, "", "limits", vn_document_member(doc->limits, "file"));
	print_property(out, "", "limits_chosen", vn_document_member(doc->limits, "chosen"));
	print_floor(doc, out);
	if (json_is_object(doc->baseline))
		print_property(out, "", "baseline", vn_document_member(doc->baseline, "file"));
	for (int i = 0; i < vn_document_lines(doc->notes); i++)
		print_property(out, "", "note", vn_document_line(doc->notes, i));
	for (int i = 0; i < vn_document_lines(doc->warnings); i++)
		print_property(out, "", "warning", vn_document_line(doc->warnings, i));
	print_recording(out, "reference.", doc->reference);
	print_recording(out, "candidate.", doc->candidate);
	fputs("    </properties>\n", out);
}

/* Full details for one checkpoint that has them; for others only the checks they broke. */
static void failure_text(const vn_document *doc, int point, FILE *out)
{
	const vn_checkpoint *p = &doc->checkpoint[point];
	const int            x = vn_document_detail_at(doc, point);
	char                 words[VN_WORDS];
	vn_text_stream       s;
	FILE                *to = vn_alloc_stream(&s);
	if (x >= 0)
		vn_report_full(doc, x, false, false, to);
	for (int i = 0; x < 0 && i < p->n_checks; i++) {
		const vn_check k = vn_check_at(p, i);
		if (!k.holds)
			vn_say(to, "%s\n", vn_judge_say_check(p, &k, words));
	}
	if (x < 0 && p->replayed)
		vn_say(to, "replayed: %s\n", vn_document_replayed(doc, p, words));
	if (p->worst < 0) /* repeated in the text, because GitLab shows no message */
		vn_say(to, "%s\n", vn_judge_say_failure(p, words));
	vn_xml_lines(out, vn_alloc_streamed(&s));
	free(s.text);
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

static void print_testcase(const vn_document *doc, int point, FILE *out)
{
	const vn_checkpoint *p = &doc->checkpoint[point];
	char                 label[VN_LABEL], class[48], words[VN_WORDS], said[VN_WORDS + 16];
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
		failure_text(doc, point, out);
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
}

/* A criterion that does not hold where the comparison passes was allowed. */
static bool criterion_fails(const vn_document *doc, const json_t *c)
{
	return !doc->within && json_is_false(json_object_get(c, "holds"));
}

static void print_criterion(const vn_document *doc, const json_t *c, FILE *out)
{
	const bool fails = criterion_fails(doc, c), holds = json_is_true(json_object_get(c, "holds"));

	fputs("    <testcase classname=\"criteria\"", out);
	print_attribute(out, "name", vn_document_member(c, "name"));
	fputs(" time=\"0\">\n      ", out);
	fputs(fails ? "<failure" : holds ? "<system-out>" : "<skipped", out);
	if (holds)
		vn_xml_text(out, vn_document_member(c, "words"));
	else
		print_attribute(out, "message", vn_document_member(c, "words"));
	fputs(fails ? " type=\"criterion\"/>" : holds ? "</system-out>" : "/>", out);
	fputs("\n    </testcase>\n", out);
}

/* Under --strict, the absence of warnings is a test of its own. */
static void print_warnings(const vn_document *doc, FILE *out)
{
	const int n = vn_document_lines(doc->warnings);
	char      said[64];
	fputs("    <testcase classname=\"strict\" name=\"warnings\" time=\"0\"", out);
	if (n) {
		snprintf(said, sizeof said, "--strict: %d warning%s", n, n == 1 ? "" : "s");
		fputs(">\n      <failure", out);
		print_attribute(out, "message", said);
		fputs(" type=\"warning\">", out);
		for (int i = 0; i < n; i++) {
			vn_xml_text(out, vn_document_line(doc->warnings, i));
			fputc('\n', out);
		}
		fputs("</failure>\n    </testcase>\n", out);
	} else {
		fputs("/>\n", out);
	}
}

static void print_counts(const vn_document *doc, FILE *out)
{
	const bool strict = json_is_true(json_object_get(doc->strict, "asked"));
	const int  criteria = (int)json_array_size(doc->criteria);
	int        skipped = 0, failed = 0;
	for (int i = 0; i < doc->n; i++)
		skipped += let_go(&doc->checkpoint[i]);
	for (int i = 0; i < criteria; i++) {
		const json_t *c = json_array_get(doc->criteria, (size_t)i);
		failed += criterion_fails(doc, c);
		skipped += !criterion_fails(doc, c) && !json_is_true(json_object_get(c, "holds"));
	}
	fprintf(out, " tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"%d\" time=\"0\"", doc->n + criteria + strict,
	        doc->n_fails + failed + (strict && vn_document_lines(doc->warnings)), skipped);
}

vn_status vn_report_junit(const vn_document *doc, const vn_report_options *o, FILE *out, vn_error *err)
{
	(void)o;
	(void)err;
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"vernier compare\"", out);
	print_counts(doc, out);
	fputs(">\n  <testsuite", out);
	print_attribute(out, "name", vn_document_member(doc->candidate, "path"));
	print_counts(doc, out);
	fputs(">\n", out);
	print_properties(doc, out);
	for (size_t i = 0; i < json_array_size(doc->criteria); i++)
		print_criterion(doc, json_array_get(doc->criteria, i), out);
	for (int i = 0; i < doc->n; i++)
		print_testcase(doc, i, out);
	if (json_is_true(json_object_get(doc->strict, "asked")))
		print_warnings(doc, out);
	fputs("  </testsuite>\n</testsuites>\n", out);
	return VN_OK;
}
