/* report_full.c: all details of one checkpoint, as lines of text. */
#include "compare/explain/explain_words.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/check_words.h"
#include "compare/replay/replay_words.h"
#include "compare/report/report.h"

#include "libref/base/say.h"
#include "libref/base/text.h"

#include <inttypes.h>

static void print_values(FILE *out, const char *what, const vn_report_detail *d, int side)
{
	vn_say(out, "  %-14s", what);
	for (int i = 0; i < d->n_around; i++)
		fprintf(out, " %12.6g", d->around[side][i]);
	fputc('\n', out);
}

static void print_statistics(FILE *out, const char *what, const vn_stats *s, bool colour)
{
	vn_say(out, "  %-14s min %.6g  max %.6g  mean %.6g  rms %.6g", what, s->min, s->max, s->mean, s->rms);
	if (s->nan || s->inf)
		vn_say(out, "  %s%" PRId64 " NaN, %" PRId64 " Inf%s", VN_RED(colour), s->nan, s->inf, VN_COLOUR_OFF(colour));
	fputc('\n', out);
}

static void print_inputs(FILE *out, const vn_comparison *c, const vn_report_detail *d)
{
	char   label[VN_LABEL];
	double ratio;
	vn_say(out, "  %-14s ", "inputs");
	if (d->n_input < 0)
		vn_say(out, "unknown: %s\n",
		       c->opened.plan ? "the plan does not name this checkpoint"
		                      : "neither recording holds a plan that names them");
	else if (d->n_input == 0)
		fprintf(out, "none of them was compared\n");
	for (int i = 0; i < d->n_input; i++) {
		const vn_checkpoint *k = &c->result.checkpoint[d->input[i]];
		if (i)
			vn_say(out, "  %-14s ", "");
		vn_say(out, "%s: %s nmse ", k->status == VN_OUTSIDE ? "OUTSIDE limits" : "within limits", vn_label(k, label));
		if (k->m.finite)
			fprintf(out, "%.2g", k->m.value[VN_M_NMSE]);
		else
			fputc('-', out);
		if (vn_ratio_of(c, k, &ratio))
			fprintf(out, " (%.2g x floor)", ratio);
		fputc('\n', out);
	}
}

static void print_explained(FILE *out, const vn_comparison *c, int point)
{
	const vn_explanation *x = vn_explanation_of(c, point);
	char                  text[VN_EXPLAINED];
	vn_lines              more = { 0 };
	if (!x)
		return;
	vn_say(out, "  %-14s %s\n", "explained", vn_explain_say_one(c, x, text));
	vn_explain_say_more(c, x, &more);
	for (int i = 0; i < more.n; i++)
		vn_say(out, "  %-14s %s\n", "", more.line[i]);
	vn_lines_free(&more);
}

static void print_products(FILE *out, const vn_comparison *c, const vn_checkpoint *k)
{
	vn_gemm   g[VN_MAX_GEMM];
	char      text[VN_GEMM_TEXT];
	const int n = vn_replayed_products(c, k, g);

	for (int i = 0; i < n; i++)
		vn_say(out, "  %-14s %s\n", i ? "" : "gemm", vn_gemm_text(&g[i], text));
}

/* Where each program recorded it, as far as the files say. */
static void recorded_at(FILE *out, const vn_entry *ref, const vn_entry *cand)
{
	const vn_entry *const e[] = { cand, ref };
	const char           *before = "  recorded at    ";
	char                  text[4 * VN_SOURCE_LINE_MAX]; /* escapes are longer */

	for (int i = 0; i < 2; i++)
		if (*e[i]->source_line) {
			snprintf(text, sizeof text, "%s", e[i]->source_line);
			vn_text_clean(text, sizeof text); /* it is untrusted text */
			vn_say(out, "%s%s %s", before, i ? "reference" : "candidate", text);
			before = "; ";
		}
	if (*before == ';')
		fputc('\n', out);
}

void vn_report_full(const vn_comparison *c, const vn_report_detail *x, bool colour, FILE *out)
{
	const vn_checkpoint *k = &c->result.checkpoint[x->checkpoint];
	const vn_entry *r = vn_recording_entry(c->opened.ref, k->ref), *d = vn_recording_entry(c->opened.cand, k->cand);
	const char     *title = x->checkpoint != c->result.first ? k->origin ? "origin" : "also outside"
	                        : k->origin                      ? "first divergence and origin"
	                                                         : "first divergence";
	char            label[VN_LABEL], shape[VN_SHAPE_TEXT], words[VN_WORDS];
	vn_say(out, "%s%s: %s%s", VN_BOLD(colour), title, vn_label(k, label), VN_COLOUR_OFF(colour));
	if (k->layer >= 0)
		vn_say(out, "   layer %d, point %s", k->layer, vn_point_of(k));
	if (*vn_op_of(c, k))
		vn_say(out, ", op %s", vn_op_of(c, k));
	vn_say(out, ", %s %s, %s against %s\n", vn_shape_text(&r->shape, shape), vn_entry_axes(r), vn_dtype_name(r->dtype),
	       vn_dtype_name(d->dtype));
	recorded_at(out, r, d);
	for (int i = 0; i < k->n_checks; i++) {
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
		       "first nonfinite", x->where, k->m.nan[0], k->m.inf[0], k->m.nan[1], k->m.inf[1]);
	else if (k->m.at >= 0)
		vn_say(out, "  %-14s %s: reference %.9g, candidate %.9g, difference %.3g\n", "worst element", x->where,
		       k->m.ref_at, k->m.cand_at, k->m.value[VN_M_MAX_ABS]);
	if (k->m.finite)
		vn_say(out, "  %-14s ulp (%s) p50 %g  p99 %g  max %g;  norm ratio %.6g;  max rel %.3g\n", "spread",
		       vn_dtype_name(k->m.grid), k->m.value[VN_M_ULP_P50], k->m.value[VN_M_ULP_P99], k->m.value[VN_M_ULP_MAX],
		       k->m.value[VN_M_NORM_RATIO], k->m.value[VN_M_MAX_REL]);
	for (int i = 0; i < x->profile.words.n; i++)
		vn_say(out, "  %-14s %s\n", i ? "" : "profile", x->profile.words.line[i]);
	if (k->replayed)
		vn_say(out, "  %-14s %s\n", "replayed", vn_replay_say_result(c, k, words));
	print_products(out, c, k);
	print_explained(out, c, x->checkpoint);
	vn_say(out, "  %-14s %s\n", "neighbours", x->around_where);
	print_values(out, "reference", x, 0);
	print_values(out, "candidate", x, 1);
	print_statistics(out, "reference", &x->stats[0], colour);
	print_statistics(out, "candidate", &x->stats[1], colour);
	print_inputs(out, c, x);
	fputc('\n', out);
}
