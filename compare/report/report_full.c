/* report_full.c: all details of one checkpoint, as lines of text. */
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/check_words.h"
#include "compare/report/report.h"

#include "libref/base/say.h"
#include "libref/base/text.h"

#include <inttypes.h>

static void print_values(FILE *out, const char *what, const json_t *side)
{
	size_t  i;
	json_t *x;
	vn_say(out, "  %-14s", what);
	json_array_foreach(json_object_get(side, "around"), i, x)
	{
		fprintf(out, " %12.6g", json_is_number(x) ? json_number_value(x) : vn_json_word_value(vn_document_text(x)));
	}
	fputc('\n', out);
}

static void print_statistics(FILE *out, const char *what, const json_t *side, bool colour)
{
	const json_t *s = json_object_get(side, "statistics");
	const int64_t nan = json_integer_value(json_object_get(s, "nan")),
				  inf = json_integer_value(json_object_get(s, "inf"));
	vn_say(out, "  %-14s min %.6g  max %.6g  mean %.6g  rms %.6g", what, vn_document_number(s, "min"),
	       vn_document_number(s, "max"), vn_document_number(s, "mean"), vn_document_number(s, "rms"));
	if (nan || inf)
		vn_say(out, "  %s%" PRId64 " NaN, %" PRId64 " Inf%s", VN_RED(colour), nan, inf, VN_COLOUR_OFF(colour));
	fputc('\n', out);
}

static void print_inputs(FILE *out, const vn_document *doc, const json_t *detail)
{
	const json_t *inputs = json_object_get(detail, "inputs");
	const int     n = vn_document_lines(inputs);
	char          label[VN_LABEL];
	double        ratio;
	vn_say(out, "  %-14s ", "inputs");
	if (!json_is_array(inputs))
		vn_say(out, "unknown: %s\n", vn_document_member(detail, "inputs_are"));
	else if (n == 0)
		fprintf(out, "none of them was compared\n");
	for (int i = 0; i < n; i++) {
		const int at = vn_document_find(doc, vn_document_member(json_array_get(inputs, (size_t)i), "name"));
		if (i)
			vn_say(out, "  %-14s ", "");
		if (at < 0)
			continue; /* no memory for its name */
		const vn_checkpoint *k = &doc->checkpoint[at];
		char                 nmse[24] = "-", over[40] = "";
		if (k->m.finite)
			snprintf(nmse, sizeof nmse, "%.2g", k->m.value[VN_M_NMSE]);
		if (vn_ratio_of(doc, k, &ratio))
			snprintf(over, sizeof over, " (%.2g x floor)", ratio);
		vn_say(out, "%s: %s nmse %s%s\n", k->status == VN_OUTSIDE ? "OUTSIDE limits" : "within limits",
		       vn_label(k, label), nmse, over);
	}
}

static void print_explained(FILE *out, const vn_document *doc, int point)
{
	const json_t *x = vn_document_explanation(doc, point), *more = json_object_get(x, "details");
	if (!x)
		return;
	vn_say(out, "  %-14s %s\n", "explained", vn_document_member(x, "words"));
	for (int i = 0; i < vn_document_lines(more); i++)
		vn_say(out, "  %-14s %s\n", "", vn_document_line(more, i));
}

static void print_products(FILE *out, const vn_document *doc, const vn_checkpoint *k)
{
	vn_gemm   g[VN_MAX_GEMM];
	char      text[VN_GEMM_TEXT];
	const int n = vn_document_products(doc, k, g);

	for (int i = 0; i < n; i++)
		vn_say(out, "  %-14s %s\n", i ? "" : "gemm", vn_gemm_text(&g[i], text));
}

/* Where each program recorded it, as far as the files say. */
static void recorded_at(FILE *out, const json_t *detail)
{
	static const char *const side[] = { "candidate", "reference" };
	const char              *before = "  recorded at    ";
	char                     text[4 * VN_SOURCE_LINE_MAX]; /* escapes are longer */

	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof text, "%s", vn_document_member(json_object_get(detail, side[i]), "source_line"));
		vn_text_clean(text, sizeof text); /* it is untrusted text */
		if (!*text)
			continue;
		vn_say(out, "%s%s %s", before, side[i], text);
		before = "; ";
	}
	if (*before == ';')
		fputc('\n', out);
}

void vn_report_full(const vn_document *doc, int detail, bool brief, bool colour, FILE *out)
{
	const json_t *x = json_array_get(doc->divergences, (size_t)detail), *ref = json_object_get(x, "reference"),
				 *cand = json_object_get(x, "candidate"), *around = json_object_get(x, "around"),
				 *worst = json_object_get(x, "worst_element"),
				 *profile = json_object_get(json_object_get(x, "profile"), "words");
	const int             point = doc->detail[detail];
	const vn_checkpoint  *k = &doc->checkpoint[point];
	const vn_tensor_facts about = vn_document_about(doc, k);
	const char           *title = point != doc->divergence ? k->origin ? "origin" : "also outside"
	                              : k->origin              ? "first divergence and origin"
	                                                       : "first divergence";
	char                  label[VN_LABEL], shape[VN_SHAPE_TEXT], words[VN_WORDS];
	vn_say(out, "%s%s: %s%s", VN_BOLD(colour), title, vn_label(k, label), VN_COLOUR_OFF(colour));
	if (k->layer >= 0)
		vn_say(out, "   layer %d, point %s", k->layer, vn_point_of(k));
	if (*about.op)
		vn_say(out, ", op %s", about.op);
	vn_say(out, ", %s %s, %s against %s\n", vn_shape_text(&about.shape, shape), about.axes,
	       vn_document_member(ref, "dtype"), vn_document_member(cand, "dtype"));
	recorded_at(out, x);
	for (int i = 0; i < k->n_checks && !brief; i++) {
		const vn_check one = vn_check_at(k, i);
		if (one.holds)
			continue;
		vn_say(out, "  %-14s %s", "outside", vn_judge_say_check(k, &one, words));
		const char *why = one.rule ? vn_rule_why(one.rule, one.form, one.metric) : NULL;
		if (why)
			vn_say(out, " %s\"%.200s\"%s", VN_DIM(colour), why, VN_COLOUR_OFF(colour));
		fputc('\n', out);
	}
	if (k->m.bad_at >= 0)
		vn_say(out,
		       "  %-14s at %s; reference %" PRId64 " NaN %" PRId64 " Inf, candidate %" PRId64 " NaN %" PRId64 " Inf\n",
		       "first nonfinite", vn_document_member(worst, "where"), k->m.nan[0], k->m.inf[0], k->m.nan[1],
		       k->m.inf[1]);
	else if (k->m.at >= 0)
		vn_say(out, "  %-14s %s: reference %.9g, candidate %.9g, difference %.3g\n", "worst element",
		       vn_document_member(worst, "where"), vn_document_number(ref, "worst"), vn_document_number(cand, "worst"),
		       k->m.value[VN_M_MAX_ABS]);
	if (k->m.finite && !brief)
		vn_say(out, "  %-14s ulp (%s) p50 %g  p99 %g  max %g;  norm ratio %.6g;  max rel %.3g\n", "spread",
		       vn_dtype_name(k->m.grid), k->m.value[VN_M_ULP_P50], k->m.value[VN_M_ULP_P99], k->m.value[VN_M_ULP_MAX],
		       k->m.value[VN_M_NORM_RATIO], k->m.value[VN_M_MAX_REL]);
	for (int i = 0; i < vn_document_lines(profile) && !brief; i++)
		vn_say(out, "  %-14s %s\n", i ? "" : "profile", vn_document_line(profile, i));
	if (k->replayed)
		vn_say(out, "  %-14s %s\n", "replayed", vn_document_replayed(doc, k, words));
	if (!brief) {
		print_products(out, doc, k);
		print_explained(out, doc, point);
	}
	vn_say(out, "  %-14s %s\n", "neighbours", vn_document_member(around, "where"));
	print_values(out, "reference", ref);
	print_values(out, "candidate", cand);
	if (!brief) {
		print_statistics(out, "reference", ref, colour);
		print_statistics(out, "candidate", cand, colour);
	}
	print_inputs(out, doc, x);
	fputc('\n', out);
}
