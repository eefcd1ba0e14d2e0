/* store_model.c: writes /model with its table of weights, and /plan. See store.h. It is a file of
 * its own so that programs that only use the C API need not link models. */
#include "capture/store/store_internal.h"

#include "capture/file/plan_json.h"

#include <stdio.h>
#include <stdlib.h>

static void put_plan(vn_message *m, const vn_plan_text *t)
{
	vn_message_put_int(m, t->layers);
	vn_message_put_int(m, t->vocab);
	vn_message_put_int(m, t->context);
	vn_message_put_texts(m, t->node, t->n_nodes);
	vn_message_put_texts(m, t->value, t->n_values);
	vn_message_put_texts(m, t->weight, t->n_weights);
}

/* Reads the text back, because a text that differs from the plan would be noticed only on
 * opening the file. */
static vn_status plan_text(const vn_store *s, vn_plan_text *t, vn_error *err)
{
	vn_plan  *again = NULL;
	vn_status st = vn_plan_to_text(s->plan, t, err);

	if (!st && !(st = vn_plan_from_text(t, &again, err)) && !vn_plan_equal(s->plan, again))
		st = vn_fail(err, VN_ERR_IO, "%s: the text of the plan does not read back as the plan", s->place.partial);
	vn_plan_destroy(again);
	return st;
}

vn_status vn_store_model(vn_store *s, const vn_model *m, const vn_weight_row *rows, vn_error *err)
{
	const vn_model_words w = { vn_model_family(m), vn_model_config(m), vn_model_provenance(m), vn_model_format(m),
		                       vn_model_path(m) };
	vn_plan_text         text = { 0 };
	vn_message           out = { 0 };
	vn_status            st = s->plan ? plan_text(s, &text, err) : VN_OK;

	if (!st) {
		vn_store_put_model(&out, &w, rows, vn_model_plan(m)->n_weights);
		vn_message_put_int(&out, s->plan != NULL);
		if (s->plan)
			put_plan(&out, &text);
		st = vn_store_do(s, VN_SCRIBE_MODEL, &out, NULL, err);
	}
	vn_plan_text_free(&text);
	return st;
}
