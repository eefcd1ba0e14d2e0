/* report_json.c: a comparison as JSON, schema vernier-compare/2. report_json_detail.c writes
 * divergences in full. */
#include "compare/judge/baseline.h"
#include "compare/judge/subject.h"
#include "compare/judge/unmeasured.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/report/next.h"
#include "compare/report/words.h"

#include "compare/replay/local.h"
#include "compare/replay/replay_words.h"
#include "compare/report/report_page.h"
#include "compare/report/report_json.h"
#include "compare/weights/weights_report.h"

#include "libref/base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *rule_json(const vn_check *k)
{
	if (!k->rule)
		return json_null(); /* built in */
	return json_pack("{s:o, s:o, s:o, s:o}", "file", vn_json_text(k->rule->file), "line",
	                 k->line ? json_integer(k->line) : json_null(), "match", vn_json_text(k->rule->match), "why",
	                 vn_json_text(vn_rule_why(k->rule, k->form, k->metric)));
}

/* page: for the HTML page, where a rule is its index in a list. */
static json_t *limit_json(const vn_check *k, const vn_page_shared *page)
{
	char    key[VN_KEY_TEXT];
	json_t *j = json_object();
	json_object_set_new(j, "metric", json_string(vn_limit_key(k->form, k->metric, key)));
	json_object_set_new(j, "limit_fraction", vn_json_real(vn_check_limit_fraction(k)));
	json_object_set_new(j, "limit", json_real(k->limit));
	json_object_set_new(j, "value", vn_json_real(k->value));
	if (k->has_best)
		json_object_set_new(j, "best", json_real(k->best));
	if (!isfinite(k->value))
		json_object_set_new(j, "value_is", json_string(k->note ? "unknown" : vn_json_not_finite(k->value)));
	json_object_set_new(j, "holds", json_boolean(k->holds));
	if (k->note)
		json_object_set_new(j, "note", json_string(k->note));
	if (k->steps)
		json_object_set_new(j, "steps", json_integer(k->steps));
	if (k->rule && k->rule->key[k->form][k->metric].deep)
		json_object_set_new(j, "by_depth",
		                    json_pack("{s:f, s:f}", "first", k->rule->key[k->form][k->metric].value, "last",
		                              k->rule->key[k->form][k->metric].last));
	json_object_set_new(j, "rule",
	                    page && k->rule ? json_integer(vn_page_number(page->index, page->rule, rule_json(k)))
	                                    : rule_json(k));
	return j;
}

/* The element with the largest error: its index along each axis, and both values. */
static json_t *worst_element(const vn_checkpoint *p, const vn_shape *s)
{
	int64_t at[VN_MAX_RANK], left = p->m.at;
	for (int i = s->rank - 1; i >= 0; i--) {
		at[i] = s->dim[i] ? left % s->dim[i] : 0;
		left = s->dim[i] ? left / s->dim[i] : 0;
	}
	return json_pack("{s:o, s:f, s:f}", "index", vn_json_integers(at, s->rank), "reference", p->m.ref_at, "candidate",
	                 p->m.cand_at);
}

static void add_measured(json_t *j, const vn_checkpoint *p, const vn_shape *shape)
{
	json_t *m = json_object(), *f = json_object(), *m_flags = json_object(), *f_flags = json_object();
	for (int i = 0; i < VN_N_METRICS; i++) {
		const char *key = vn_metric_get((vn_metric)i)->name;
		if (p->m.has[i])
			vn_json_put_real(m, key, vn_metric_shown(p, (vn_metric)i), m_flags);
		if (p->m.has[i] && p->has_floor)
			vn_json_put_real(f, key, p->floor[i], f_flags);
	}
	json_object_set_new(j, "metrics", m);
	vn_json_put_flags(j, "metrics_not_finite", m_flags);
	vn_json_put_flags(j, "floor", f);
	vn_json_put_flags(j, "floor_not_finite", f_flags);
	if (p->m.at >= 0 && isfinite(p->m.ref_at) && isfinite(p->m.cand_at))
		json_object_set_new(j, "max_abs_at", worst_element(p, shape));
	if (p->m.has[VN_M_ARGMAX_AGREEMENT])
		json_object_set_new(j, "argmax_strict", json_real(p->m.argmax_strict));
	if (p->m.has[VN_M_KL_MEAN] && isfinite(p->m.kl_half))
		json_object_set_new(j, "kl_mean_half", json_real(p->m.kl_half));
	json_object_set_new(j, "elements", json_integer(p->m.n));
	json_object_set_new(j, "nan", vn_json_integers(p->m.nan, 2));
	json_object_set_new(j, "inf", vn_json_integers(p->m.inf, 2));
	if (p->m.masked)
		json_object_set_new(j, "masked", json_integer(p->m.masked));
	if (p->m.worst_token >= 0 && p->m.finite)
		json_object_set_new(j, "worst_token", json_integer(p->m.worst_token));
	if (p->m.worst_nmse_token >= 0 && p->m.finite)
		json_object_set_new(j, "worst_nmse_token", json_integer(p->m.worst_nmse_token));
	if (p->m.worst_nmse_channel >= 0 && p->m.finite)
		json_object_set_new(j, "worst_nmse_channel", json_integer(p->m.worst_nmse_channel));
	if (p->m.worst_scale_channel >= 0 && p->m.finite)
		json_object_set_new(j, "worst_scale_channel", json_integer(p->m.worst_scale_channel));
	if (p->m.worst_row >= 0)
		json_object_set_new(j, "worst_row", json_integer(p->m.worst_row));
	json_object_set_new(j, "ulp_of", json_string(vn_dtype_name(p->m.grid)));
}

/* The matrix products of the operation (libref/plan/gemm.h). */
static json_t *products_json(const vn_comparison *c, const vn_checkpoint *p)
{
	vn_gemm   g[VN_MAX_GEMM];
	const int n = vn_replayed_products(c, p, g);
	json_t   *all = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(all, json_pack("{s:s, s:I, s:I, s:I, s:b, s:I, s:I, s:I, s:i, s:i, s:f}", "of", g[i].of,
		                                     "m", (json_int_t)g[i].m, "n", (json_int_t)g[i].n, "k", (json_int_t)g[i].k,
		                                     "b_transposed", (int)g[i].transposed, "lda", (json_int_t)g[i].lda, "ldb",
		                                     (json_int_t)g[i].ldb, "ldc", (json_int_t)g[i].ldc, "heads", g[i].batch,
		                                     "heads_per_b", g[i].share, "alpha", g[i].alpha));
	return all;
}

/* The error added by the operation itself, and that of its inputs (replay.h). */
static json_t *replayed_json(const vn_comparison *c, const vn_checkpoint *p)
{
	json_t *j = json_object(), *flags = json_object();
	vn_json_put_real(j, "local", vn_local_nmse(p), flags);
	vn_json_put_real(j, "local_floor", p->replay.floor, flags);
	vn_json_put_real(j, "local_over_floor", vn_local_over_floor(p), flags);
	vn_json_put_real(j, "worst_token_over_floor", vn_local_token(p), flags);
	vn_json_put_real(j, "max_abs_over_floor", vn_local_element(p), flags);
	json_object_set_new(j, "independent_numbers", json_integer(p->replay.independent_numbers));
	json_object_set_new(j, "nonfinite", json_integer(p->replay.bad));
	json_object_set_new(j, "recorder_fault", json_boolean(p->replay.recorder_fault));
	json_object_set_new(j, "columns",
	                    p->replay.columns ? json_string(vn_columns_name(p->replay.columns)) : json_null());
	json_object_set_new(j, "wrong_in_order", json_boolean(p->replay.wrong_in_order));
	json_object_set_new(j, "operation_wrong", json_boolean(vn_local_beyond(p)));
	json_object_set_new(j, "fault_at",
	                    p->replay.charged_to >= 0 ? vn_json_name(&c->result.checkpoint[p->replay.charged_to])
	                                              : json_null());
	vn_json_put_real(j, "inherited", p->replay.inherited, flags);
	vn_json_put_real(j, "gain", p->replay.gain, flags);
	json_object_set_new(j, "gemm", products_json(c, p));
	json_object_set_new(j, "span", json_integer(p->replay.span));
	json_object_set_new(j, "least_seen",
	                    p->replay.slack > 0 ? json_real(vn_local_least_seen(&p->replay)) : json_null());
	vn_json_put_flags(j, "not_finite", flags);
	return j;
}

static json_t *overflow_json(const vn_overflow *o)
{
	json_t *j = json_object(), *flags = json_object();
	json_object_set_new(j, "format", json_string(vn_dtype_name(o->format)));
	vn_json_put_real(j, "largest", o->largest, flags);
	vn_json_put_real(j, "reached", o->reached, flags);
	if (o->terms) {
		json_object_set_new(j, "term", json_integer(o->term));
		json_object_set_new(j, "terms", json_integer(o->terms));
		vn_json_put_real(j, "whole", o->whole, flags);
	}
	vn_json_put_flags(j, "not_finite", flags);
	return j;
}

static json_t *checkpoint_json(const vn_comparison *c, const vn_checkpoint *p, const vn_page_shared *page)
{
	const vn_entry *e = vn_entry_of(c, p);
	json_t         *j = json_object(), *l = json_array();
	json_object_set_new(j, "name", vn_json_text(p->name));
	json_object_set_new(j, "step", json_integer(p->step));
	json_object_set_new(j, "order", json_integer(p->order));
	json_object_set_new(j, "layer", json_integer(p->layer));
	json_object_set_new(j, "point", vn_json_text(vn_point_of(p)));
	json_object_set_new(j, "op", vn_json_text(vn_op_of(c, p)));
	json_object_set_new(j, "shape", vn_json_integers(e->shape.dim, e->shape.rank));
	json_object_set_new(j, "axes", vn_json_text(vn_entry_axes(e)));
	json_object_set_new(j, "status", json_string(vn_checkpoint_status_text(p->status)));
	json_object_set_new(j, "fails", json_boolean(p->fails));
	json_object_set_new(j, "origin", json_boolean(p->origin));
	if (p->replayed)
		json_object_set_new(j, "replay", replayed_json(c, p));
	if (p->overwritten)
		json_object_set_new(j, "overwritten", vn_json_text(p->overwritten));
	if (p->overflow.reached > 0)
		json_object_set_new(j, "overflow", overflow_json(&p->overflow));
	if (p->since > VN_UNCHANGED)
		json_object_set_new(j, "since", json_string(vn_judge_since_text(p->since)));
	if (isfinite(p->was))
		json_object_set_new(j, "was", json_real(p->was));
	if (p->detail)
		json_object_set_new(j, "detail", vn_json_text(p->detail));
	if (vn_judge_is_unmeasured(p))
		json_object_set_new(j, "sides", vn_unmeasured_sides(c, p));
	if (p->contents)
		json_object_set_new(j, "contents", vn_json_text(p->contents));
	if (p->m.n)
		add_measured(j, p, &e->shape);
	else
		json_object_set_new(j, "metrics", json_object());
	for (int i = 0; i < p->n_checks; i++) {
		const vn_check k = vn_check_at(p, i);
		json_array_append_new(l, limit_json(&k, page));
	}
	json_object_set_new(j, "limits", l);
	return j;
}

/* ---- decoding -------------------------------------------------------------------- */

static json_t *of_scores(const double *value)
{
	json_t *j = json_object(), *flags = json_object();
	for (int m = 0; m < VN_N_METRICS; m++)
		if (vn_metric_get((vn_metric)m)->scores)
			vn_json_put_real(j, vn_metric_get((vn_metric)m)->name, value[m], flags);
	vn_json_put_flags(j, "not_finite", flags);
	return j;
}

static json_t *pools_json(const vn_comparison *c)
{
	json_t *a = json_array();
	for (int i = 0; i < c->result.n_pooled_logits; i++) {
		const vn_pooled_logits *g = &c->result.pooled_logits[i];
		json_array_append_new(a,
		                      json_pack("{s:o, s:i, s:i, s:i, s:o, s:o, s:f, s:o, s:o}", "name", vn_json_text(g->name),
		                                "steps", g->n, "first", c->result.checkpoint[g->first].step, "last",
		                                c->result.checkpoint[g->last].step, "metrics", of_scores(g->value), "floor",
		                                isnan(g->floor[VN_M_KL_MEAN]) ? json_null() : of_scores(g->floor),
		                                "argmax_strict", g->argmax_strict, "kl_mean_half", vn_json_real(g->kl_half),
		                                "worst", vn_json_name(&c->result.checkpoint[g->worst])));
	}
	return a;
}

static json_t *recording_json(const vn_recording *r)
{
	const vn_facts *f = vn_recording_run(r);
	json_t         *j = json_object(), *run = json_object();
	for (int i = 0; i < f->n; i++) {
		json_t *key = vn_json_text(f->fact[i].key);
		json_object_set_new(run, json_string_value(key), vn_json_text(f->fact[i].value));
		json_decref(key);
	}
	const char *about[][2] = {
		{ "created", vn_recording_root(r, "created") },
		{ "tool", vn_recording_root(r, "tool") },
		{ "tool_version", vn_recording_root(r, "tool_version") },
		{ "family", vn_recording_family(r) },
		{ "weights", vn_recording_provenance(r) },
		{ "weights_format", vn_recording_format(r) },
	};
	json_object_set_new(j, "path", vn_json_text(vn_recording_path(r)));
	for (size_t i = 0; i < sizeof about / sizeof *about; i++)
		if (about[i][1] && *about[i][1])
			json_object_set_new(j, about[i][0], vn_json_text(about[i][1]));
	json_object_set_new(j, "tokens", json_integer(vn_recording_tokens(r, NULL, NULL)));
	json_object_set_new(j, "run", run);
	return j;
}

/* ---- the whole ------------------------------------------------------------------- */

static json_t *baseline_json(const vn_comparison *c)
{
	json_t *j = c->request.options->baseline ? json_object() : json_null();
	if (!c->request.options->baseline)
		return j;
	json_object_set_new(j, "file", vn_json_text(c->request.options->baseline));
	for (int s = VN_FIXED; s < VN_N_SINCE; s++)
		json_object_set_new(j, vn_judge_since_text((vn_since)s), json_integer(c->result.n_since[s]));
	return j;
}

/* What a later comparison checks before it accepts this report as its baseline. */
static json_t *subject_json(const vn_comparison *c)
{
	vn_subject s;
	vn_error   err;
	if (vn_subject_of(c, &s, &err)) /* without memory the report is no baseline */
		return json_null();
	json_t *j = json_object();
	for (int i = 0; i < VN_SUBJECTS; i++)
		json_object_set_new(j, vn_subject_key[i], vn_json_text(s.value[i]));
	return j;
}

/* Everything except the checkpoints: the members before them and those after. */
static json_t *head_json(const vn_comparison *c, const vn_report_options *o)
{
	json_t   *j = json_object(), *origins = json_array();
	const int first = vn_first_failure(c);
	char      summary[VN_WORDS];
	vn_lines  next = { 0 };
	json_object_set_new(j, "schema", json_string("vernier-compare/2"));
	json_object_set_new(j, "verdict",
	                    json_string(!c->result.within                                            ? "outside"
	                                : c->result.n_since[VN_KNOWN] + c->result.n_since[VN_BETTER] ? "known"
	                                                                                             : "within"));
	json_object_set_new(j, "summary", json_string(vn_report_say_counts(c, summary)));
	json_object_set_new(j, "first_divergence", first >= 0 ? vn_json_name(&c->result.checkpoint[first]) : json_null());
	for (int i = 0; i < c->result.n_origins; i++)
		json_array_append_new(origins, vn_json_name(&c->result.checkpoint[c->result.origins[i]]));
	json_object_set_new(j, "origins", origins);
	if (c->result.why)
		json_object_set_new(j, "explanations", vn_json_explanations(c));
	json_object_set_new(
		j, "digests",
		json_pack("{s:I, s:I, s:I}", "checked", (json_int_t)(c->result.digests.checked + c->result.digests.wrong),
	              "wrong", (json_int_t)c->result.digests.wrong, "without", (json_int_t)c->result.digests.without));
	json_object_set_new(j, "localised", json_boolean(c->result.graph || c->result.first < 0));
	json_object_set_new(j, "reference", recording_json(c->opened.ref));
	json_object_set_new(j, "candidate", recording_json(c->opened.cand));
	json_object_set_new(j, "limits",
	                    json_pack("{s:o, s:o}", "file", vn_json_text(c->request.limits->path), "chosen",
	                              vn_json_text(o->limits_chosen)));
	json_object_set_new(j, "floor", *c->result.floor_from ? vn_json_text(c->result.floor_from) : json_null());
	json_object_set_new(j, "baseline", baseline_json(c));
	json_object_set_new(j, "subject", subject_json(c));
	json_object_set_new(j, "weights", vn_weights_json(c->result.weights));
	vn_next_commands(c, &next);
	json_object_set_new(j, "next", vn_json_lines(&next));
	vn_lines_free(&next);
	json_object_set_new(j, "notes", vn_json_lines(&c->result.notes));
	json_object_set_new(j, "warnings", vn_json_lines(&c->result.warnings));
	json_object_set_new(j, "strict",
	                    json_pack("{s:b, s:b}", "asked", c->request.options->strict, "decided", c->result.strict));
	return j;
}

static json_t *tail_json(const vn_comparison *c, const vn_story *s)
{
	json_t *j = json_object(), *full = json_array();
	for (int i = 0; i < s->n; i++)
		json_array_append_new(full, vn_json_divergence(c, &s->detail[i]));
	json_object_set_new(j, "steps_together", pools_json(c));
	json_object_set_new(j, "divergences", full);
	json_object_set_new(j, "divergences_left_out", json_integer(s->left_out));
	return j;
}

/* Does the page have a checkpoint only as a row? *failed: counts the failed checkpoints after the
 * first VN_PAGE_HOLDS ones. */
static bool is_brief(const vn_checkpoint *p, int i, int *failed)
{
	return i >= VN_PAGE_HOLDS && p->m.n && (!p->fails || ++*failed > VN_PAGE_HOLDS);
}

/* Writes one line for each checkpoint: a long decode has too many to hold in memory. rows: only
 * those that the page has as rows, in one list of numbers, which a browser reads fastest. */
static bool put_checkpoints(FILE *out, const vn_comparison *c, const vn_page_shared *page, bool rows, size_t flags)
{
	bool good = true;

	fputs(rows ? "\"rows\": [" : "\"checkpoints\": [", out);
	for (int i = 0, n = 0, failed = 0; good && i < c->result.n_checkpoints; i++) {
		const vn_checkpoint *p = &c->result.checkpoint[i];
		if ((page && is_brief(p, i, &failed)) != rows)
			continue;
		fputs(n++ ? ",\n" : "\n", out);
		good = rows ? vn_page_row(page, c, p, i, out) : vn_json_print_value(checkpoint_json(c, p, page), out, flags);
	}
	fputs("\n],\n", out);
	return good;
}

vn_status vn_report_json(const vn_comparison *c, const vn_story *s, const vn_report_options *o, FILE *out,
                         vn_error *err)
{
	const size_t   line = o->page ? JSON_COMPACT | JSON_REAL_PRECISION(9) : VN_JSON_LINE;
	const size_t   flags = o->page ? line : JSON_INDENT(1) | JSON_REAL_PRECISION(17);
	vn_page_shared page = { json_object(), json_array(), json_array() };
	bool           good;

	fputs("{\n", out);
	good = vn_json_print_members(head_json(c, o), out, flags, "\n,") &&
	       put_checkpoints(out, c, o->page ? &page : NULL, false, line);
	if (good && o->page)
		good = put_checkpoints(out, c, &page, true, line) &&
		       vn_json_print_members(
				   json_pack("{s:O, s:O, s:o}", "kinds", page.kind, "rules", page.rule, "plan", vn_page_plan(c)), out,
				   line, "\n,");
	good = good && vn_json_print_members(tail_json(c, s), out, flags, "\n");
	fputs("}\n", out);
	json_decref(page.index);
	json_decref(page.kind);
	json_decref(page.rule);
	if (!good || ferror(out))
		return vn_fail(err, VN_ERR_IO, "the JSON report could not be written");
	return VN_OK;
}

vn_status vn_report_refused(const vn_comparison *c, const char *why, FILE *out, vn_error *err)
{
	json_t  *j = json_object();
	vn_lines next = { 0 };

	json_object_set_new(j, "schema", json_string("vernier-compare/2"));
	json_object_set_new(j, "verdict", json_string("trouble"));
	json_object_set_new(j, "summary", vn_json_text(why));
	json_object_set_new(j, "refusals", vn_json_lines(&c->result.refusals));
	vn_next_after_refusal(c, &next);
	json_object_set_new(j, "next", vn_json_lines(&next));
	vn_lines_free(&next);
	fputs("{\n", out);
	const bool good = vn_json_print_members(j, out, JSON_INDENT(1), "\n");
	fputs("}\n", out);
	return good && !ferror(out) ? VN_OK : vn_fail(err, VN_ERR_IO, "the JSON report could not be written");
}
