/* show_json.c: prints a recording as JSON. A number that is not finite becomes null. */
#include "capture/show/show_json.h"
#include "capture/recording/left_out.h"
#include "capture/show/show_text.h"

#include "libref/base/json.h"
#include "libref/base/shell.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 12 };

/* Adds "vernier WORD...", unless a word cannot be typed. NULL: no word. */
static void add_command(json_t *list, const char *const word[MOST_WORDS])
{
	char line[VN_SHELL_LINE] = "vernier";

	for (int i = 0; i < MOST_WORDS; i++)
		if (word[i])
			vn_shell_add(line, sizeof line, word[i]);
	if (*line)
		json_array_append_new(list, vn_json_text(line));
}

static void add_tensor(json_t *list, const vn_recording *r, int step, const char *name, const char *to)
{
	char which[VN_NAME_MAX + 24];

	snprintf(which, sizeof which, "step.%d/%s", step, name);
	add_command(list, (const char *[MOST_WORDS]) { "show", vn_recording_path(r), which, to ? "--values" : NULL, to });
}

static bool is_reference(const vn_recording *r)
{
	const char *engine = vn_facts_get(vn_recording_run(r), "engine");
	const char *precision = vn_facts_get(vn_recording_run(r), "precision");

	return engine && precision && strcmp(engine, "ref") == 0 && strcmp(precision, "f32") == 0;
}

/* Records the model anew with the same tokens, on the reference or, if the recording is the
 * reference's, on the GPU, and compares. */
static void add_comparison(json_t *list, const vn_recording *r)
{
	const char *own = vn_recording_path(r), *path = vn_recording_model_here(r);
	const char *model = path ? path : "MODEL";
	const bool  is_ref = is_reference(r);
	char        other[VN_SHELL_FILE];

	if (vn_recording_batch(r) > 1 || vn_recording_ranks(r) || !vn_recording_complete(r))
		return;
	strcpy(other, is_ref ? "gpu.h5" : "ref.h5");
	vn_shell_new_file(other, sizeof other);
	const bool forced = vn_recording_decoded(r) > 0;
	add_command(list, (const char *[MOST_WORDS]) { "capture", is_ref ? "gpu" : "ref", model,
	                                               vn_recording_has_mtp(r) ? "--mtp" : NULL, "--ids-from", own,
	                                               forced ? "--force-ids-from" : "-o", forced ? own : other,
	                                               forced ? "-o" : NULL, forced ? other : NULL });
	add_command(list,
	            (const char *[MOST_WORDS]) { "compare", is_ref ? own : other, is_ref ? other : own, "--model", model });
}

/* Returns commands for a shell, the most useful first: after the whole recording (i < 0) or entry i
 * was shown, and after it was checked. */
static json_t *show_next(const vn_recording *r, int i)
{
	json_t     *list = json_array();
	const char *path = vn_recording_path(r);

	if (i >= 0) {
		char to[VN_NAME_MAX + 8];
		snprintf(to, sizeof to, "%s.npy", vn_recording_entry(r, i)->name);
		vn_shell_new_file(to, sizeof to);
		add_tensor(list, r, vn_recording_entry(r, i)->step, vn_recording_entry(r, i)->name, to);
	}
	add_command(list, (const char *[MOST_WORDS]) { "show", path, "--check" });
	if (i < 0)
		add_comparison(list, r);
	return list;
}

json_t *vn_show_next_after(const vn_recording *r, const vn_file_check *c)
{
	json_t *list = json_array();

	for (int i = 0; i < c->n; i++)
		if (c->finding[i].name) {
			add_tensor(list, r, c->finding[i].step, c->finding[i].name, NULL);
			break;
		}
	if (c->digests_wrong == 0)
		add_comparison(list, r);
	return list;
}

enum { FIRST_VALUES = 64 };

static json_t *number_as_json(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

json_t *vn_show_text(const char *s)
{
	return s && *s ? vn_json_text(s) : json_null();
}

static json_t *shape_json(const vn_shape *s)
{
	json_t *a = json_array();
	for (int i = 0; i < s->rank; i++)
		json_array_append_new(a, json_integer(s->dim[i]));
	return a;
}

static json_t *statistics_json(const vn_stats *s)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "min", number_as_json(s->min), "max",
	                 number_as_json(s->max), "mean", number_as_json(s->mean), "rms", number_as_json(s->rms), "absmax",
	                 number_as_json(s->absmax), "nan", (json_int_t)s->nan, "inf", (json_int_t)s->inf);
}

static json_t *tensor_json(const vn_recording *r, int i)
{
	const vn_entry *e = vn_recording_entry(r, i);
	return json_pack("{s:s, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "name", e->name, "step",
	                 e->step, "order", e->order, "layer", e->layer, "point", vn_show_text(e->point), "op",
	                 vn_show_text(e->op), "basis", vn_show_text(e->basis), "axes", vn_show_text(e->axes), "source_line",
	                 vn_show_text(e->source_line), "dtype", vn_dtype_name(e->dtype), "shape", shape_json(&e->shape),
	                 "digest", vn_show_text(vn_entry_digest(e).hex), "same_as",
	                 e->same_as < 0 ? json_null() : json_string(vn_recording_entry(r, e->same_as)->name), "statistics",
	                 vn_recording_stats(r, e) ? statistics_json(vn_recording_stats(r, e)) : json_null());
}

static json_t *weights_json(const vn_recording *r)
{
	const vn_weight_row *w;
	int                  n = vn_recording_weights(r, &w);
	json_t              *a = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(a,
		                      json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "name", w[i].name,
		                                "dtype", vn_dtype_name(w[i].dtype), "shape", shape_json(&w[i].shape), "digest",
		                                vn_show_text(w[i].digest.hex), "min", number_as_json(w[i].stats.min), "max",
		                                number_as_json(w[i].stats.max), "mean", number_as_json(w[i].stats.mean), "rms",
		                                number_as_json(w[i].stats.rms), "nan", (json_int_t)w[i].stats.nan, "inf",
		                                (json_int_t)w[i].stats.inf));
	return a;
}

static json_t *ids_json(const int32_t *list, int64_t n)
{
	json_t *a = json_array();
	for (int64_t i = 0; i < n; i++)
		json_array_append_new(a, json_integer(list[i]));
	return a;
}

static json_t *words_json(char *const *list, int64_t n)
{
	json_t *a = list ? json_array() : json_null();
	for (int64_t i = 0; list && i < n; i++)
		json_array_append_new(a, json_string(list[i]));
	return a;
}

static json_t *unread_json(const vn_recording *r)
{
	const char *name[VN_UNREAD_NAMED];
	const int   n = vn_recording_unread(r, name);
	json_t     *a = json_array();

	for (int i = 0; i < n && i < VN_UNREAD_NAMED; i++)
		json_array_append_new(a, json_string(name[i]));
	return json_pack("{s:i, s:o}", "count", n, "first", a);
}

/* Tensors that the run left out because they agreed with a reference. */
static json_t *left_out(const vn_recording *r)
{
	const vn_left_out *l;
	const int          n = vn_recording_left_out(r, &l);
	json_t            *list = json_array();

	for (int i = 0; i < n; i++) {
		json_t *measured = json_object();
		for (int k = 0; k < l[i].n; k++)
			json_object_set_new(measured, l[i].measure[k].name, json_real(l[i].measure[k].value));
		json_array_append_new(list,
		                      json_pack("{s:i, s:s, s:s, s:s, s:o}", "step", l[i].step, "name", l[i].name, "digest",
		                                l[i].digest.hex, "reference", l[i].reference.hex, "measured", measured));
	}
	return list;
}

static json_t *step_json(const vn_step *s)
{
	return json_pack("{s:i, s:I, s:I, s:I, s:I}", "number", s->number, "position", (json_int_t)s->position, "tokens",
	                 (json_int_t)s->tokens, "first_row", (json_int_t)s->first_row, "rows", (json_int_t)s->rows);
}

/* The tensors of one step, or of all (NULL). */
static json_t *tensors_of(const vn_recording *r, const vn_step *s)
{
	json_t *a = json_array();
	for (int i = 0; i < vn_recording_count(r); i++)
		if (!s || vn_recording_entry(r, i)->step == s->number)
			json_array_append_new(a, tensor_json(r, i));
	return a;
}

static json_t *describe_step(const vn_recording *r, const vn_step *s)
{
	return json_pack("{s:o, s:o}", "step", step_json(s), "tensors", tensors_of(r, s));
}

static json_t *describe_recording(const vn_recording *r)
{
	const vn_facts *run = vn_recording_run(r);
	const vn_step  *step;
	const int32_t  *id, *position;
	int64_t         n = vn_recording_tokens(r, &id, &position);
	json_t         *facts = json_object(), *steps = json_array();

	for (int i = 0; i < run->n; i++)
		json_object_set_new(facts, run->fact[i].key, vn_show_text(run->fact[i].value));
	for (int i = 0, k = vn_recording_steps(r, &step); i < k; i++)
		json_array_append_new(steps, step_json(&step[i]));
	json_t *all = json_pack("{s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o}",
	                        "created", vn_show_text(vn_recording_root(r, "created")), "tool",
	                        vn_show_text(vn_recording_root(r, "tool")), "tool_version",
	                        vn_show_text(vn_recording_root(r, "tool_version")), "run", facts, "batch",
	                        (json_int_t)vn_recording_batch(r), "token_ids", ids_json(id, n), "positions",
	                        ids_json(position, n), "token_text", words_json(vn_recording_token_text(r), n), "not_read",
	                        unread_json(r), "model", "family", vn_show_text(vn_recording_family(r)), "provenance",
	                        vn_show_text(vn_recording_provenance(r)), "format", vn_show_text(vn_recording_format(r)),
	                        "weights", weights_json(r), "steps", steps, "tensors", tensors_of(r, NULL));
	const vn_left_out *left;
	json_object_set_new(all, "left_out", vn_recording_left_out(r, &left) ? left_out(r) : NULL);
	return all;
}

static json_t *entry_json(const vn_recording *r, int i, const void *data)
{
	const vn_entry *e = vn_recording_entry(r, i);
	int64_t         n = vn_shape_count(&e->shape);
	json_t         *t = tensor_json(r, i), *values = json_array();

	for (int64_t k = 0; k < n && k < FIRST_VALUES; k++)
		json_array_append_new(values, number_as_json(vn_show_value(data, e->dtype, k)));
	json_object_set_new(t, "first_values", values);
	return json_pack("{s:o}", "tensor", t);
}

bool vn_show_json(const vn_recording *r, const vn_step *step, int i, const void *data, FILE *out)
{
	VN_OWNED json_t *j = json_pack("{s:s, s:o, s:b, s:o}", "schema", "vernier-show/1", "file",
	                               vn_show_text(vn_recording_path(r)), "complete", (int)vn_recording_complete(r),
	                               "next", show_next(r, i));
	VN_OWNED json_t *rest = i >= 0 ? entry_json(r, i, data) : step ? describe_step(r, step) : describe_recording(r);
	bool             good = j && rest && json_object_update(j, rest) == 0 &&
	            vn_json_print(j, out, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) && fputc('\n', out) != EOF;

	return good;
}
