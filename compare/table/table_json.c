/* table_json.c: the table for a program, schema vernier-table/1: specs/json.md. */
#include "compare/table/table.h"
#include "compare/comparison/checkpoint.h"
#include "compare/many/many_report.h"
#include "compare/text/json.h"

#include <math.h>

static json_t *recording_json(const vn_many *m, int i)
{
	const vn_many_candidate *const x = &m->candidate[i];
	return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o}", "letter", vn_json_letter(vn_many_letter(i)), "path",
	                 vn_json_text(x->path), "recorded_by", vn_many_member(x, "about"), "verdict",
	                 vn_many_verdicts[x->status], "trouble", vn_many_member(x, "trouble"), "refusals",
	                 vn_many_list(x, "refusals") ? vn_many_member(x, "refusals") : json_array());
}

/* Writes one line of a group, or null. flags: the kinds of numbers that are not finite (JSON has
 * none). */
static json_t *line_json(const vn_table_line *l)
{
	json_t *j, *values = json_array(), *flags = json_object();
	char    place[24];

	if (!l->there) {
		json_decref(values);
		json_decref(flags);
		return json_null();
	}
	for (int i = 0; i < l->n; i++) {
		snprintf(place, sizeof place, "[%d]", i);
		if (!isfinite(l->value[i]))
			json_object_set_new(flags, place, json_string(vn_json_not_finite(l->value[i])));
		json_array_append_new(values, vn_json_real(l->value[i]));
	}
	j = json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "values", values, "min", vn_json_real(l->stats.min), "max",
	              vn_json_real(l->stats.max), "mean", vn_json_real(l->stats.mean), "rms", vn_json_real(l->stats.rms),
	              "nan", (json_int_t)l->stats.nan, "inf", (json_int_t)l->stats.inf);
	vn_json_put_flags(j, "flags", flags);
	return j;
}

static json_t *group_json(const vn_table *t, int row, const vn_table_group *g)
{
	const vn_many_row *r = &t->many->row[row];
	json_t            *each = json_array();

	for (int i = 0; i < t->many->n; i++) {
		const vn_many_cell *x = vn_many_cell_of(t->many, row, i);
		const bool          measured = x && x->measured;
		json_t *j = json_pack("{s:o, s:o, s:b, s:o, s:o}", "letter", vn_json_letter(vn_many_letter(i)), "status",
		                      x ? json_string(vn_checkpoint_status_text(x->status)) : json_null(), "fails",
		                      x && x->fails, "max_abs", measured ? vn_json_real(x->max_abs) : json_null(), "max_rel",
		                      measured ? vn_json_real(x->max_rel) : json_null());
		json_object_set_new(j, "tensor", line_json(&g->line[1 + i]));
		json_array_append_new(each, j);
	}
	return json_pack("{s:o, s:i, s:i, s:o, s:o, s:o}", "name", vn_json_text(r->name), "step", r->step, "layer",
	                 r->layer, "token", g->token >= 0 ? json_integer(g->token) : json_null(), "reference",
	                 line_json(&g->line[0]), "candidates", each);
}

vn_status vn_table_json(const vn_table *t, FILE *out, vn_error *err)
{
	const vn_many    *m = t->many;
	const char *const by = vn_many_ref_about(m);
	vn_lines          next = { 0 };
	vn_table_group    g;
	vn_status         st = VN_OK;
	bool              good;

	fputs("{\n", out);
	good = vn_json_print_members(json_pack("{s:s, s:s, s:o, s:o}", "schema", "vernier-table/1", "verdict",
	                                       vn_many_verdicts[vn_many_status(m)], "reference", vn_json_text(m->ref),
	                                       "recorded_by", vn_json_text(*by ? by : NULL)),
	                             out, VN_JSON_LINE, ",\n");
	fputs("\"candidates\": [", out);
	for (int i = 0; good && i < m->n; i++) {
		fputs(i ? ",\n" : "\n", out);
		good = vn_json_print_value(recording_json(m, i), out, VN_JSON_LINE);
	}
	fputs("\n],\n\"next\": ", out);
	vn_many_next(m, &next);
	good = good && vn_json_print_value(vn_json_lines(&next), out, VN_JSON_LINE);
	vn_lines_free(&next);
	fputs(",\n\"checkpoints\": [", out);
	for (int row = 0; good && !st && row < m->n_rows; row++) {
		fputs(row ? ",\n" : "\n", out);
		if (!(st = vn_table_read(t, row, &g, err)))
			good = vn_json_print_value(group_json(t, row, &g), out, VN_JSON_LINE);
	}
	fputs("\n]\n}\n", out);
	if (st)
		return st;
	return good && !ferror(out) ? VN_OK : vn_fail(err, VN_ERR_IO, "the JSON report could not be written");
}
