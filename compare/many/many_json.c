/* many_json.c: several candidates for a program, schema vernier-compare-many/2. */
#include "compare/many/many_report.h"
#include "compare/text/json.h"

static bool print_candidate(const vn_many *m, int i, FILE *out)
{
	const vn_many_candidate *x = &m->candidate[i];
	const vn_verified        digests = vn_many_digests(x, 1);
	json_t                  *j = json_object();
	bool                     good;

	json_object_set_new(j, "letter", vn_json_letter(vn_many_letter(i)));
	json_object_set_new(j, "path", vn_json_text(x->path));
	json_object_set_new(j, "recorded_by", vn_many_member(x, "about"));
	json_object_set_new(j, "status", json_integer(x->status));
	json_object_set_new(j, "trouble", vn_many_member(x, "trouble"));
	json_object_set_new(j, "refusals", vn_many_list(x, "refusals") ? vn_many_member(x, "refusals") : json_array());
	json_object_set_new(j, "digests",
	                    json_pack("{s:I, s:I, s:I}", "checked", (json_int_t)(digests.checked + digests.wrong), "wrong",
	                              (json_int_t)digests.wrong, "without", (json_int_t)digests.without));
	json_object_set_new(j, "first_divergence", x->first >= 0 ? vn_json_text(m->row[x->first].label) : json_null());
	fputs(" {\"about\": ", out);
	good = vn_json_print_value(j, out, VN_JSON_LINE);
	fputs(",\n\"report\": ", out);
	if (x->json.bytes == 0)
		fputs("null", out);
	else /* the report that vernier compare would have written for this candidate alone */
		good = vn_many_copy(x, &x->json, out) && good;
	fputs("}", out);
	return good;
}

static json_t *row_json(const vn_many *m, int at)
{
	json_t   *j = json_object(), *outside = json_array();
	const int odd = vn_many_odd(m, at);

	for (int i = 0; i < m->n; i++) {
		const vn_many_cell *x = vn_many_cell_of(m, at, i);
		if (x && x->fails)
			json_array_append_new(outside, vn_json_letter(vn_many_letter(i)));
	}
	json_object_set_new(j, "name", vn_json_text(m->row[at].name));
	json_object_set_new(j, "step", json_integer(m->row[at].step));
	json_object_set_new(j, "layer", json_integer(m->row[at].layer));
	json_object_set_new(j, "odd_one_out", odd >= 0 ? vn_json_letter(vn_many_letter(odd)) : json_null());
	json_object_set_new(j, "outside", outside);
	return j;
}

vn_status vn_many_json(const vn_many *m, const vn_many_options *o, FILE *out, vn_error *err)
{
	const char *const by = vn_many_ref_about(m);
	vn_lines          next = { 0 };
	bool              good;

	(void)o;
	fputs("{\n", out);
	good = vn_json_print_members(json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "schema", "vernier-compare-many/2",
	                                       "verdict", vn_many_verdicts[vn_many_status(m)], "reference",
	                                       vn_json_text(m->ref), "recorded_by", vn_json_text(*by ? by : NULL), "notes",
	                                       vn_json_lines(&m->notes), "elected",
	                                       m->vote ? vn_json_letter(vn_many_letter(m->elected)) : json_null()),
	                             out, VN_JSON_LINE, ",\n");
	fputs("\"candidates\": [", out);
	for (int i = 0; good && i < m->n; i++) {
		fputs(i ? ",\n" : "\n", out);
		good = print_candidate(m, i, out);
	}
	fputs("\n],\n\"checkpoints\": [", out);
	for (int i = 0; good && i < m->n_rows; i++) {
		fputs(i ? ",\n" : "\n", out);
		good = vn_json_print_value(row_json(m, i), out, VN_JSON_LINE);
	}
	fputs("\n],\n\"next\": ", out);
	vn_many_next(m, &next);
	good = vn_json_print_value(vn_json_lines(&next), out, VN_JSON_LINE) && good;
	vn_lines_free(&next);
	fputs("\n}\n", out);
	return good && !ferror(out) ? VN_OK : vn_fail(err, VN_ERR_IO, "the JSON report could not be written");
}
