/* explained_json.c: explanations as JSON; see document_json.h. */
#include "compare/explain/explain_words.h"
#include "compare/explain/sentences.h"
#include "compare/result/document_json.h"
#include "compare/trial/score.h"

#include <math.h>
#include <string.h>

static json_t *trial_json(const vn_opened *o, const vn_checkpoint *at, const vn_trial *h)
{
	const vn_plan *p = h->node < 0 ? NULL : vn_model_plan(o->model);
	json_t        *j = json_object(), *flags = json_object();
	json_object_set_new(j, "id", json_string(h->id));
	json_object_set_new(j, "words", json_string(h->words));
	json_object_set_new(j, "at", vn_json_text(p ? p->value[p->node[h->node].out[0]].name : at->name));
	if (*h->also)
		json_object_set_new(j, "also", json_string(h->also + strlen(" and ")));
	if (*h->heads_only)
		json_object_set_new(j, "heads", json_string(h->heads_only));
	json_object_set_new(j, "recorder_fault", json_boolean(h->recorder_fault));
	if (*h->recorded_instead)
		json_object_set_new(j, "recorded_instead", vn_json_text(h->recorded_instead));
	if (*h->contradicted_by)
		json_object_set_new(j, "contradicted_by", json_string(h->contradicted_by));
	vn_json_put_real(j, "residual", vn_trial_residual(h), flags);
	if (h->estimated)
		json_object_set_new(j, "estimated", json_true());
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
	json_t  *j = json_object(), *flags = json_object();
	char     text[VN_EXPLAINED];
	vn_lines more = { 0 };

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
	if (*x->separating_input)
		json_object_set_new(j, "separating_input", vn_json_text(x->separating_input));
	if (x->same_answer_as >= 0)
		json_object_set_new(j, "same_answer_as",
		                    vn_json_name(&r->checkpoints.of[r->why->of[x->same_answer_as].checkpoint]));
	json_object_set_new(j, "error_shape", vn_json_lines(&x->error_shape));
	vn_lines_free(&more);
	return j;
}

json_t *vn_json_explanations(const vn_opened *o, const vn_result *r)
{
	json_t *a = json_array();
	for (int i = 0; i < r->why->n; i++)
		json_array_append_new(a, explanation_json(o, r, &r->why->of[i]));
	return a;
}
