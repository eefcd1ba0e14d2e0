/* report_json.c: a document as JSON, and as the data of the HTML page. */
#include "compare/report/report_page.h"

/* ---- the members beside the checkpoints ---------------------------------------------- */

typedef enum section { HEAD, PLAN, TAIL } section;

/* The sentences of a document are in the page itself, not in its data. */
enum { FOR_READERS = 3, ANY = 0 };

/* Those of one part, as an object. */
static json_t *members(const vn_document *doc, section which, bool page)
{
	json_t *j = json_object();

#define FIELD(key, kind, since, part) \
	if ((part) == which && doc->key && !(page && (since) == FOR_READERS)) \
		json_object_set(j, #key, doc->key);
#include "compare/result/fields.def"
#undef FIELD
	return j;
}

/* ---- the checkpoints --------------------------------------------------------------------- */

/* Does the page have a checkpoint only as a row? *failed: counts the failed checkpoints after the
 * first VN_PAGE_HOLDS ones. */
static bool is_brief(const vn_checkpoint *p, int i, int *failed)
{
	return i >= VN_PAGE_HOLDS && p->m.n && (!p->fails || ++*failed > VN_PAGE_HOLDS);
}

/* In a page a rule is its number in a list. */
static json_t *row_of(const vn_document *doc, const vn_checkpoint *p, const vn_page_shared *page)
{
	json_t *row = vn_document_row(doc, p, !page), *limit;
	size_t  i;

	json_array_foreach(page ? json_object_get(row, "limits") : NULL, i, limit)
	{
		json_t *rule = json_object_get(limit, "rule");
		if (json_is_object(rule))
			json_object_set_new(limit, "rule",
			                    json_integer(vn_page_number(page->index, page->rule, json_incref(rule))));
	}
	return row;
}

/* Writes one line for each checkpoint: a long decode has too many to hold in memory. rows: only
 * those that the page has as rows, in one list of numbers, which a browser reads fastest. */
static bool put_checkpoints(FILE *out, const vn_document *doc, const vn_page_shared *page, bool rows, size_t flags)
{
	bool good = true;

	fputs(rows ? "\"rows\": [" : "\"checkpoints\": [", out);
	for (int i = 0, n = 0, failed = 0; good && i < doc->n; i++) {
		const vn_checkpoint *p = &doc->checkpoint[i];
		if ((page && is_brief(p, i, &failed)) != rows)
			continue;
		fputs(n++ ? ",\n" : "\n", out);
		good = rows ? vn_page_row(page, doc, p, i, out) : vn_json_print_value(row_of(doc, p, page), out, flags);
	}
	fputs("\n],\n", out);
	return good;
}

/* ---- the whole --------------------------------------------------------------------------- */

vn_status vn_report_json(const vn_document *doc, const vn_report_options *o, FILE *out, vn_error *err)
{
	const size_t   line = o->page ? JSON_COMPACT | JSON_REAL_PRECISION(9) : VN_JSON_LINE;
	const size_t   flags = o->page ? line : JSON_INDENT(1) | JSON_REAL_PRECISION(17);
	vn_page_shared page = { json_object(), json_array(), json_array() };
	bool           good;

	fputs("{\n", out);
	good = vn_json_print_members(members(doc, HEAD, o->page), out, flags, "\n,") &&
	       put_checkpoints(out, doc, o->page ? &page : NULL, false, line);
	if (good && o->page)
		good = put_checkpoints(out, doc, &page, true, line) &&
		       vn_json_print_members(json_pack("{s:O, s:O}", "kinds", page.kind, "rules", page.rule), out, line, ",\n");
	good = good && vn_json_print_members(members(doc, PLAN, false), out, line, "\n,") &&
	       vn_json_print_members(members(doc, TAIL, o->page), out, flags, "\n");
	fputs("}\n", out);
	json_decref(page.index);
	json_decref(page.kind);
	json_decref(page.rule);
	if (!good || ferror(out))
		return vn_fail(err, VN_ERR_IO, "the JSON report could not be written");
	return VN_OK;
}

vn_status vn_report_refused(const char *why, const vn_lines *refusals, const vn_lines *next, FILE *out, vn_error *err)
{
	json_t *j = json_object();

	json_object_set_new(j, "schema", json_string(VN_DOCUMENT_SCHEMA));
	json_object_set_new(j, "verdict", json_string("trouble"));
	json_object_set_new(j, "summary", vn_json_text(why));
	json_object_set_new(j, "refusals", vn_json_lines(refusals));
	json_object_set_new(j, "next", vn_json_lines(next));
	fputs("{\n", out);
	const bool good = vn_json_print_members(j, out, JSON_INDENT(1), "\n");
	fputs("}\n", out);
	return good && !ferror(out) ? VN_OK : vn_fail(err, VN_ERR_IO, "the JSON report could not be written");
}
