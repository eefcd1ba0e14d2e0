/* rows.c: a checkpoint as JSON; see document.h. */
#include "compare/comparison/checks.h"
#include "compare/judge/baseline.h"
#include "compare/judge/unmeasured.h"
#include "compare/replay/local.h"
#include "compare/result/document_json.h"

#include <math.h>

static json_t *rule_json(const vn_check *k)
{
	if (!k->rule)
		return json_null(); /* built in */
	return json_pack("{s:o, s:o, s:o, s:o}", "file", vn_json_text(k->rule->file), "line",
	                 k->line ? json_integer(k->line) : json_null(), "match", vn_json_text(k->rule->match), "why",
	                 vn_json_text(vn_rule_why(k->rule, k->form, k->metric)));
}

static json_t *limit_json(const vn_check *k)
{
	char    key[VN_KEY_TEXT];
	json_t *j = json_object();
	json_object_set_new(j, "metric", json_string(vn_limit_key(k->form, k->metric, key)));
	json_object_set_new(j, "limit_fraction", vn_json_real(vn_check_limit_fraction(k)));
	json_object_set_new(j, "limit", json_real(k->limit));
	json_object_set_new(j, "value", vn_json_real(k->value));
	json_object_set_new(j, "best", k->has_best ? json_real(k->best) : NULL);
	if (!isfinite(k->value))
		json_object_set_new(j, "value_is", json_string(k->note ? "unknown" : vn_json_not_finite(k->value)));
	json_object_set_new(j, "holds", json_boolean(k->holds));
	json_object_set_new(j, "note", k->note ? json_string(k->note) : NULL);
	json_object_set_new(j, "steps", k->steps ? json_integer(k->steps) : NULL);
	if (k->rule && k->rule->key[k->form][k->metric].deep)
		json_object_set_new(j, "by_depth",
		                    json_pack("{s:f, s:f}", "first", k->rule->key[k->form][k->metric].value, "last",
		                              k->rule->key[k->form][k->metric].last));
	json_object_set_new(j, "rule", rule_json(k));
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
	json_object_set_new(j, "masked", p->m.masked ? json_integer(p->m.masked) : NULL);
	json_object_set_new(j, "first_token", p->first_token ? json_integer(p->first_token) : NULL);
	if (p->m.worst_token >= 0 && p->m.finite)
		json_object_set_new(j, "worst_token", json_integer(p->m.worst_token));
	if (p->m.worst_nmse_token >= 0 && p->m.finite)
		json_object_set_new(j, "worst_nmse_token", json_integer(p->m.worst_nmse_token));
	if (p->m.worst_nmse_channel >= 0 && p->m.finite)
		json_object_set_new(j, "worst_nmse_channel", json_integer(p->m.worst_nmse_channel));
	if (p->m.worst_scale_channel >= 0 && p->m.finite)
		json_object_set_new(j, "worst_scale_channel", json_integer(p->m.worst_scale_channel));
	json_object_set_new(j, "worst_row", p->m.worst_row >= 0 ? json_integer(p->m.worst_row) : NULL);
	json_object_set_new(j, "ulp_of", json_string(vn_dtype_name(p->m.grid)));
}

/* The matrix products of the operation (libref/plan/gemm.h). */
static json_t *products_json(const vn_document *doc, const vn_checkpoint *p)
{
	vn_gemm   g[VN_MAX_GEMM];
	const int n = vn_document_products(doc, p, g);
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
static json_t *replayed_json(const vn_document *doc, const vn_checkpoint *p, bool all)
{
	json_t *j = json_object(), *flags = json_object();
	char    words[VN_WORDS];
	vn_json_put_real(j, "local", vn_local_nmse(p), flags);
	vn_json_put_real(j, "local_floor", p->replay.floor, flags);
	vn_json_put_real(j, "local_over_floor", vn_local_over_floor(p), flags);
	vn_json_put_real(j, "worst_token_over_floor", vn_local_token(p), flags);
	vn_json_put_real(j, "max_abs_over_floor", vn_local_element(p), flags);
	json_object_set_new(j, "independent_numbers", json_integer(p->replay.independent_numbers));
	json_object_set_new(j, "nonfinite", json_integer(p->replay.bad));
	json_object_set_new(j, "other_ids", p->replay.other_ids ? json_integer(p->replay.other_ids) : NULL);
	json_object_set_new(j, "another_order", p->replay.another_order ? json_true() : NULL);
	json_object_set_new(j, "recorder_fault", json_boolean(p->replay.recorder_fault));
	json_object_set_new(j, "columns",
	                    p->replay.columns ? json_string(vn_columns_name(p->replay.columns)) : json_null());
	json_object_set_new(j, "wrong_in_order", json_boolean(p->replay.wrong_in_order));
	json_object_set_new(j, "operation_wrong", json_boolean(vn_local_beyond(p)));
	json_object_set_new(j, "fault_at",
	                    p->replay.charged_to >= 0 ? vn_json_name(&doc->checkpoint[p->replay.charged_to]) : json_null());
	vn_json_put_real(j, "inherited", p->replay.inherited, flags);
	vn_json_put_real(j, "gain", p->replay.gain, flags);
	json_object_set_new(j, "gemm", products_json(doc, p));
	json_object_set_new(j, "span", json_integer(p->replay.span));
	json_object_set_new(j, "least_seen",
	                    p->replay.slack > 0 ? json_real(vn_local_least_seen(&p->replay)) : json_null());
	json_object_set_new(j, "slack", all && p->replay.slack > 0 ? json_real(p->replay.slack) : NULL);
	if (all && (p->fails || p->origin))
		json_object_set_new(j, "words", vn_json_text(vn_document_replayed(doc, p, words)));
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

/* What decides how a report words the rest. */
static void add_unseen(json_t *j, const vn_document *doc, const vn_checkpoint *p)
{
	json_object_set_new(j, "broken", p->worst >= 0 ? json_integer(p->worst) : NULL);
	json_object_set_new(j, "vacuous", p->vacuous ? json_string(p->vacuous) : NULL);
	json_object_set_new(j, "finite", p->m.finite != p->m.n ? json_integer(p->m.finite) : NULL);
	json_object_set_new(j, "first_nonfinite", p->m.n && p->m.bad_at >= 0 ? json_integer(p->m.bad_at) : NULL);
	if (p->m.n && p->pooled_small >= 0)
		json_object_set_new(j, "floor_of_steps", vn_json_real(doc->pooled_small[p->pooled_small].floor[VN_M_NMSE]));
}

json_t *vn_document_row(const vn_document *doc, const vn_checkpoint *p, bool all)
{
	const vn_tensor_facts about = vn_document_about(doc, p);
	json_t *j = json_pack("{s:o, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:s, s:b, s:b}", "name", vn_json_text(p->name),
	                      "step", p->step, "order", p->order, "layer", p->layer, "point", vn_json_text(vn_point_of(p)),
	                      "op", vn_json_text(about.op), "shape", vn_json_integers(about.shape.dim, about.shape.rank),
	                      "axes", vn_json_text(about.axes), "status", vn_checkpoint_status_text(p->status), "fails",
	                      (int)p->fails, "origin", (int)p->origin),
		   *l = json_array();
	json_object_set_new(j, "replay", p->replayed ? replayed_json(doc, p, all) : NULL);
	json_object_set_new(j, "overwritten", p->overwritten ? vn_json_text(p->overwritten) : NULL);
	json_object_set_new(j, "overflow", p->overflow.reached > 0 ? overflow_json(&p->overflow) : NULL);
	if (p->since > VN_UNCHANGED)
		json_object_set_new(j, "since", json_string(vn_judge_since_text(p->since)));
	json_object_set_new(j, "was", isfinite(p->was) ? json_real(p->was) : NULL);
	json_object_set_new(j, "detail", p->detail ? vn_json_text(p->detail) : NULL);
	json_object_set_new(j, "sides", vn_judge_is_unmeasured(p) ? vn_document_sides(doc, p) : NULL);
	json_object_set_new(j, "contents", p->contents ? vn_json_text(p->contents) : NULL);
	if (p->m.n)
		add_measured(j, p, &about.shape);
	else
		json_object_set_new(j, "metrics", json_object());
	for (int i = 0; i < p->n_checks; i++) {
		const vn_check k = vn_check_at(p, i);
		json_array_append_new(l, limit_json(&k));
	}
	json_object_set_new(j, "limits", l);
	if (all)
		add_unseen(j, doc, p);
	return j;
}
