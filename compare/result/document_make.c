/* document_make.c: makes a document of a comparison that has ended; see document.h. */
#include "compare/comparison/checkpoint.h"
#include "compare/explain/explain_words.h"
#include "compare/explain/sentences.h"
#include "compare/judge/baseline.h"
#include "compare/judge/subject.h"
#include "compare/result/criteria.h"
#include "compare/result/document_json.h"
#include "compare/result/next.h"
#include "compare/result/words.h"
#include "compare/trial/score.h"
#include "compare/weights/weights_report.h"

#include "libref/base/trouble.h"
#include "libref/model/model.h"

#include <math.h>
#include <string.h>

static json_t *trial_json(const vn_opened *o, const vn_checkpoint *at, const vn_trial *h)
{
	const vn_plan *p = h->node < 0 ? NULL : vn_model_plan(o->model);
	json_t        *j = json_object(), *flags = json_object();
	json_object_set_new(j, "id", json_string(h->id));
	json_object_set_new(j, "words", json_string(h->words));
	json_object_set_new(j, "at", vn_json_text(p ? p->value[p->node[h->node].out[0]].name : at->name));
	json_object_set_new(j, "also", *h->also ? json_string(h->also + strlen(" and ")) : NULL);
	json_object_set_new(j, "heads", *h->heads_only ? json_string(h->heads_only) : NULL);
	json_object_set_new(j, "recorder_fault", json_boolean(h->recorder_fault));
	json_object_set_new(j, "recorded_instead", *h->recorded_instead ? vn_json_text(h->recorded_instead) : NULL);
	json_object_set_new(j, "contradicted_by", *h->contradicted_by ? json_string(h->contradicted_by) : NULL);
	vn_json_put_real(j, "residual", vn_trial_residual(h), flags);
	json_object_set_new(j, "estimated", h->estimated ? json_true() : NULL);
	vn_json_put_flags(j, "not_finite", flags);
	return j;
}

/* The answer and its aliases, or the others. */
static json_t *trials_json(const vn_opened *o, const vn_result *r, const vn_findings *x, bool answers)
{
	json_t *a = json_array();
	for (int i = 0; i < x->n; i++)
		if (answers == (i < x->n_alias && (i == 0 || vn_alias_in_all_steps(r, r->why, x, i))))
			json_array_append_new(a, trial_json(o, &r->checkpoints.of[x->checkpoint], &x->by[i]));
	return a;
}

static json_t *explanation_json(const vn_opened *o, const vn_result *r, const vn_findings *x)
{
	json_t                         *j = json_object(), *flags = json_object();
	char                            text[VN_EXPLAINED];
	VN_ENDS(vn_lines_free) vn_lines more = { 0 };

	vn_explain_say_more(o, r, x, &more);
	json_object_set_new(j, "checkpoint", vn_json_name(&r->checkpoints.of[x->checkpoint]));
	json_object_set_new(j, "words", vn_json_text(vn_explain_say_one(o, r, x, text)));
	json_object_set_new(j, "details", vn_json_lines(&more));
	json_object_set_new(j, "explained", json_boolean(x->n_fit > 0));
	json_object_set_new(j, "fitted", json_boolean(x->fitted && x->n_fit));
	json_object_set_new(j, "answers", trials_json(o, r, x, true));
	json_object_set_new(j, "others", trials_json(o, r, x, false));
	json_object_set_new(j, "tried", json_integer(x->n_tried));
	vn_json_put_real(j, "margin", x->margin, flags);
	vn_json_put_real(j, "residual_unmodified", vn_trial_residual(&x->unmodified), flags);
	vn_json_put_flags(j, "not_finite", flags);
	json_object_set_new(j, "separating_input", *x->separating_input ? vn_json_text(x->separating_input) : NULL);
	if (x->same_answer_as >= 0)
		json_object_set_new(j, "same_answer_as",
		                    vn_json_name(&r->checkpoints.of[r->why->of[x->same_answer_as].checkpoint]));
	json_object_set_new(j, "error_shape", vn_json_lines(&x->error_shape));
	return j;
}

/* The explanations, which the comparison must have */
static json_t *json_explanations(const vn_opened *o, const vn_result *r)
{
	json_t *a = json_array();
	for (int i = 0; i < r->why->n; i++)
		json_array_append_new(a, explanation_json(o, r, &r->why->of[i]));
	return a;
}

static json_t *of_scores(const double *value)
{
	json_t *j = json_object(), *flags = json_object();
	for (int m = 0; m < VN_N_METRICS; m++)
		if (vn_metric_get((vn_metric)m)->scores)
			vn_json_put_real(j, vn_metric_get((vn_metric)m)->name, value[m], flags);
	vn_json_put_flags(j, "not_finite", flags);
	return j;
}

static json_t *pools_json(const vn_result *r)
{
	json_t *a = json_array();
	for (int i = 0; i < r->pools.n_pooled_logits; i++) {
		const vn_pooled_logits *g = &r->pools.pooled_logits[i];
		json_array_append_new(a,
		                      json_pack("{s:o, s:i, s:i, s:i, s:o, s:o, s:f, s:o, s:o}", "name", vn_json_text(g->name),
		                                "steps", g->n, "first", r->checkpoints.of[g->first].step, "last",
		                                r->checkpoints.of[g->last].step, "metrics", of_scores(g->value), "floor",
		                                isnan(g->floor[VN_M_KL_MEAN]) ? json_null() : of_scores(g->floor),
		                                "argmax_strict", g->argmax_strict, "kl_mean_half", vn_json_real(g->kl_half),
		                                "worst", vn_json_name(&r->checkpoints.of[g->worst])));
	}
	return a;
}

static json_t *recording_json(const vn_recording *r)
{
	const vn_facts *f = vn_recording_run(r);
	json_t         *j = json_object(), *run = json_object();
	char            recorder[VN_RECORDER], tensors[VN_TENSORS_WORDS];
	for (int i = 0; i < f->n; i++) {
		VN_OWNED json_t *key = vn_json_text(f->fact[i].key);
		json_object_set_new(run, json_string_value(key), vn_json_text(f->fact[i].value));
	}
	const char *about[][2] = {
		{ "created", vn_recording_root(r, "created") },
		{ "tool", vn_recording_root(r, "tool") },
		{ "tool_version", vn_recording_root(r, "tool_version") },
		{ "family", vn_recording_family(r) },
		{ "weights", vn_recording_provenance(r) },
		{ "weights_format", vn_recording_format(r) },
	};
	json_object_set_new(j, "path", vn_json_text(vn_recording_shown(r)));
	for (size_t i = 0; i < sizeof about / sizeof *about; i++)
		if (about[i][1] && *about[i][1])
			json_object_set_new(j, about[i][0], vn_json_text(about[i][1]));
	json_object_set_new(j, "tokens", json_integer(vn_recording_tokens(r, NULL, NULL)));
	json_object_set_new(j, "run", run);
	json_object_set_new(j, "recorded_by", vn_json_text(vn_report_say_recorder(r, recorder)));
	json_object_set_new(j, "tensors", vn_json_text(vn_recording_say_tensors(r, 0, vn_recording_count(r), tensors)));
	return j;
}

static json_t *baseline_json(const vn_opened *o, const vn_result *r)
{
	json_t *j = o->request.options->baseline ? json_object() : json_null();
	if (!o->request.options->baseline)
		return j;
	json_object_set_new(j, "file", vn_json_text(o->request.options->baseline));
	for (int s = VN_FIXED; s < VN_N_SINCE; s++)
		json_object_set_new(j, vn_judge_since_text((vn_since)s), json_integer(r->n_since[s]));
	return j;
}

static json_t *routing_json(const vn_routing_parts *p)
{
	return !p->name ? NULL
	                : json_pack("{s:o, s:o, s:o, s:o}", "checkpoint", vn_json_text(p->name), "routing",
	                            vn_json_real(p->routing), "arithmetic", vn_json_real(p->arithmetic), "together",
	                            vn_json_real(p->together));
}

/* What a later comparison checks before it accepts this report as its baseline. */
static json_t *subject_json(const vn_opened *o)
{
	vn_subject s;
	json_t    *j = json_object();
	vn_subject_of(o, &s);
	for (int i = 0; i < VN_SUBJECTS; i++)
		json_object_set_new(j, vn_subject_key[i], vn_json_text(s.value[i]));
	return j;
}

static json_t *node_json(const vn_plan *plan, const vn_node *n)
{
	json_t *j = json_object(), *out = json_array(), *in = json_array();

	for (int i = 0; i < n->n_out; i++)
		if (n->out[i] >= 0)
			json_array_append_new(out, vn_json_text(plan->value[n->out[i]].name));
	for (int i = 0; i < n->n_in; i++)
		if (n->in[i] >= 0)
			json_array_append_new(in, json_integer(plan->value[n->in[i]].node));
	json_object_set_new(j, "op", json_string(vn_op_name(n->op)));
	json_object_set_new(j, "layer", json_integer(n->layer));
	json_object_set_new(j, "out", out);
	json_object_set_new(j, "in", in);
	return j;
}

static json_t *plan_json(const vn_opened *o)
{
	const vn_plan *plan = o->plan ? o->plan : o->model ? vn_model_plan(o->model) : NULL;
	json_t        *nodes = plan ? json_array() : json_null();

	for (int i = 0; plan && i < plan->n_nodes; i++)
		json_array_append_new(nodes, node_json(plan, &plan->node[i]));
	return nodes;
}

static json_t *origins_json(const vn_result *r)
{
	json_t *a = json_array();
	for (int i = 0; i < r->localised.n_origins; i++)
		json_array_append_new(a, vn_json_name(&r->checkpoints.of[r->localised.origins[i]]));
	return a;
}

/* The lines that `say` adds. */
static json_t *said(const vn_opened *o, const vn_result *r,
                    void (*say)(const vn_opened *, const vn_result *, vn_lines *))
{
	VN_ENDS(vn_lines_free) vn_lines lines = { 0 };

	say(o, r, &lines);
	json_t *j = vn_json_lines(&lines);
	return j;
}

static void fill_sentences(vn_document *doc, const vn_opened *o, const vn_result *r)
{
	char text[VN_WORDS];

	doc->verdict_words = json_string(vn_report_say_verdict(o, r));
	doc->summary = vn_json_text(vn_report_say_counts(o, r, text));
	doc->start = vn_json_text(vn_report_say_start(o, r, text));
	doc->origins_are = vn_json_text(r->localised.n_origins ? vn_report_say_origin(o, r) : "");
	doc->cleared = said(o, r, vn_report_say_cleared);
	doc->explained = said(o, r, vn_explain_say_all);
	doc->changes = said(o, r, vn_report_say_baseline);
	doc->measured = said(o, r, vn_report_say_scores);
	doc->next = said(o, r, vn_next_commands);
}

static void fill_members(vn_document *doc, const vn_opened *o, const vn_result *result, const char *chosen)
{
	const vn_result   *r = result;
	const vn_verified *digests = &r->digests;
	const bool         known = r->n_since[VN_KNOWN] + r->n_since[VN_BETTER] > 0;

	doc->schema = json_string(VN_DOCUMENT_SCHEMA);
	doc->verdict = json_string(!r->verdict.within ? "outside" : known ? "known" : "within");
	doc->first_divergence = doc->first >= 0 ? vn_json_name(&r->checkpoints.of[doc->first]) : json_null();
	doc->origins = origins_json(result);
	doc->explanations = r->why ? json_explanations(o, result) : NULL;
	doc->digests = json_pack("{s:I, s:I, s:I}", "checked", (json_int_t)(digests->checked + digests->wrong), "wrong",
	                         (json_int_t)digests->wrong, "without", (json_int_t)digests->without);
	doc->localised = json_boolean(r->localised.graph || r->localised.run_graph || r->localised.first < 0);
	doc->reference = recording_json(o->ref);
	doc->candidate = recording_json(o->cand);
	doc->limits = json_pack("{s:o, s:o}", "file", vn_json_text(o->request.limits->path), "chosen",
	                        vn_json_text(chosen));
	doc->routing = routing_json(&r->routing);
	doc->floor = *r->floor.from ? vn_json_text(r->floor.from) : json_null();
	doc->baseline = baseline_json(o, result);
	doc->subject = subject_json(o);
	doc->weights = vn_weights_json(r->weights);
	doc->notes = vn_json_lines(&r->remarks.notes);
	doc->warnings = vn_json_lines(&r->remarks.warnings);
	doc->strict = json_pack("{s:b, s:b}", "asked", o->request.options->strict, "decided", r->verdict.strict);
	doc->bitwise = json_boolean(o->request.options->bitwise);
	doc->replayed = json_boolean(r->replayed);
	doc->criteria = vn_criteria_json(o, r);
	doc->plan = plan_json(o);
	doc->steps_together = pools_json(result);
}

/* The first divergence, else the first checkpoint that cannot be judged, else -1. */
static int first_failure(const vn_result *r)
{
	for (int i = 0; r->localised.first < 0 && i < r->checkpoints.n; i++)
		if (r->checkpoints.of[i].fails)
			return i;
	return r->localised.first;
}

vn_status vn_document_of(const vn_opened *o, const vn_result *r, int most, const char *chosen, vn_document *doc,
                         vn_error *err)
{
	const unsigned mark = vn_trouble_mark();

	*doc = (vn_document) {
		.checkpoint = r->checkpoints.of,
		.n = r->checkpoints.n,
		.first = first_failure(r),
		.divergence = r->localised.first,
		.origin = r->localised.origins,
		.n_origins = r->localised.n_origins,
		.pooled_small = r->pools.pooled_small,
		.n_fails = r->verdict.n_fails,
		.within = r->verdict.within,
		.opened = o,
		.result = r,
	};
	vn_recording_verified(o->ref, &doc->verified[0]);
	vn_recording_verified(o->cand, &doc->verified[1]);
	fill_members(doc, o, r, chosen);
	fill_sentences(doc, o, r);
	const vn_status st = vn_document_details(doc, o, r, most, err);
	return st ? st : vn_trouble_since(mark, "the report", err); /* a form would print what there is of it */
}
