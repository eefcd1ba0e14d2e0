/* document_read.c: reads a document from a JSON report; see document.h.
 *
 * The text is untrusted: every value is checked for its kind and range before it is used, and what
 * the checkpoints say must agree with the verdict. A checkpoint is read at a time, because a tree
 * of all takes ten times the memory of the text.
 */
#include "compare/result/document_json.h"
#include "compare/result/rows.h"

#include "libref/base/alloc.h"
#include "libref/base/map.h"
#include "libref/base/text.h"
#include "libref/base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 30 };

static vn_status refuse(const vn_reading *r, const char *what, vn_error *err)
{
	return vn_fail(err, VN_ERR_FORMAT,
	               "%s: %s; expected the JSON report of a comparison (vernier compare -o NAME.json)", r->path, what);
}

static vn_status refuse_schema(const vn_reading *r, const char *schema, vn_error *err)
{
	char what[160];

	snprintf(what, sizeof what, "its schema is %.60s, neither " VN_DOCUMENT_SCHEMA " nor " VN_DOCUMENT_BEFORE, schema);
	return refuse(r, what, err);
}

/* Shows every text in one line: reports print them as they are. */
static void keep_in_line(json_t *j)
{
	const char *key, *text = json_string_value(j);
	size_t      i;
	json_t     *x;
	bool        control = false;

	for (const char *c = text; c && *c; c++)
		control = control || vn_text_control(*c);
	if (control) {
		VN_FREED char *shown = vn_alloc_check(vn_utf8_shown(text, strlen(text)));
		vn_alloc_check(json_string_set(j, shown) == 0 ? j : NULL);
	}
	json_array_foreach(j, i, x)
	{
		keep_in_line(x);
	}
	json_object_foreach(j, key, x)
	{
		keep_in_line(x);
	}
}

/* ---- the members beside the checkpoints ---------------------------------------------------- */

typedef enum kind { TEXT, MAYBE_TEXT, LINES, FLAG, COUNT, OBJECT, MAYBE_OBJECT, LIST, MAYBE_LIST } kind;

enum { ANY = 0 };

static bool all_texts(const json_t *lines)
{
	size_t  i;
	json_t *line;

	json_array_foreach(lines, i, line)
	{
		if (!json_is_string(line))
			return false;
	}
	return json_is_array(lines);
}

static bool all_objects(const json_t *list)
{
	size_t  i;
	json_t *x;

	json_array_foreach(list, i, x)
	{
		if (!json_is_object(x))
			return false;
	}
	return json_is_array(list);
}

static bool is_of(const json_t *j, kind k)
{
	switch (k) {
	case MAYBE_TEXT: return json_is_string(j) || json_is_null(j);
	case TEXT: return json_is_string(j);
	case LINES: return all_texts(j);
	case FLAG: return json_is_boolean(j);
	case COUNT: return json_is_integer(j) && json_integer_value(j) >= 0;
	case MAYBE_OBJECT: return json_is_object(j) || json_is_null(j);
	case OBJECT: return json_is_object(j);
	case MAYBE_LIST: return json_is_null(j) || all_objects(j);
	case LIST: return all_objects(j);
	}
	return false;
}

/* What a report of the schema before lacks. */
static json_t *nothing_of(kind k)
{
	return k == TEXT ? json_string("") : k == LINES ? json_array() : k == FLAG ? json_false() : json_null();
}

/* Takes a member that the document knows. Others are left out, as of a report that was added to. */
static vn_status take_member(vn_document *doc, const vn_reading *r, const char *name, json_t *value, vn_error *err)
{
	char text[100];
#define FIELD(key, k, since, part) \
	if (strcmp(name, #key) == 0) { \
		snprintf(text, sizeof text, "key " #key " %s", doc->key ? "comes twice" : "is of another kind"); \
		if (doc->key || !is_of(value, k)) \
			return refuse(r, text, err); \
		doc->key = json_incref(value); \
	}
#include "compare/result/fields.def"
#undef FIELD
	return VN_OK;
}

/* Says of a side what its run states: the schema before had no words of it. */
static void say_recorder(json_t *side)
{
	const json_t *run = json_object_get(side, "run");
	char          text[200];

	snprintf(text, sizeof text, "%.90s, %.90s", vn_document_member(run, "engine"),
	         vn_document_member(run, "precision"));
	json_object_set_new(side, "recorded_by", json_string(text));
	json_object_set_new(side, "tensors", json_string("an older report"));
}

/* What a report of the schema before lacks, as far as it follows from the rest. */
static void fill_older(vn_document *doc, const vn_reading *r)
{
	const char *verdict = vn_document_text(doc->verdict);
	bool        replayed = false;

	for (int i = 0; i < r->n; i++)
		replayed = replayed || r->checkpoint[i].replayed;
	json_decref(doc->verdict_words);
	doc->verdict_words = json_string(strcmp(verdict, "outside") == 0 ? "OUTSIDE limits"
	                                 : strcmp(verdict, "known") == 0 ? "no worse than the baseline"
	                                                                 : "within limits");
	doc->replayed = json_boolean(replayed);
	say_recorder(doc->reference);
	say_recorder(doc->candidate);
}

static vn_status check_members(vn_document *doc, const vn_reading *r, vn_error *err)
{
	static const char name[] = "vernier-compare/";
	const char       *schema = vn_document_text(doc->schema);
	const int version = strcmp(schema, VN_DOCUMENT_SCHEMA) == 0 ? 3 : strcmp(schema, VN_DOCUMENT_BEFORE) == 0 ? 2 : 0;

	if (strncmp(schema, name, sizeof name - 1) != 0)
		return doc->schema ? refuse_schema(r, schema, err) : refuse(r, "no key schema", err);
	if (!version)
		return refuse_schema(r, schema, err);
	if (strcmp(vn_document_text(doc->verdict), "trouble") == 0)
		return refuse(r, "the comparison was refused, and has no result", err);
#define FIELD(key, k, since, part) \
	if (!doc->key && (since) && version < (since)) \
		doc->key = nothing_of(k); \
	if (!doc->key && (since)) \
		return refuse(r, "no key " #key, err);
#include "compare/result/fields.def"
#undef FIELD
	if (version == 2 && !*vn_document_text(doc->verdict_words))
		fill_older(doc, r);
	return VN_OK;
}

/* ---- names ------------------------------------------------------------------------------- */

/* The checkpoints that are charged with the errors of others. */
static vn_status find_charged(const vn_document *doc, vn_reading *r, vn_error *err)
{
	for (int i = 0; i < r->n; i++)
		if (r->row[i].fault_at && (r->checkpoint[i].replay.charged_to = vn_document_find(doc, r->row[i].fault_at)) < 0)
			return refuse(r, "key fault_at names no checkpoint", err);
	return VN_OK;
}

static vn_status find_origins(vn_document *doc, vn_reading *r, vn_error *err)
{
	const int n = vn_document_lines(doc->origins);

	r->origin = vn_alloc_zero((size_t)n, sizeof *r->origin);
	for (int i = 0; i < n; i++)
		if ((r->origin[i] = vn_document_find(doc, vn_document_line(doc->origins, i))) < 0 ||
		    !doc->checkpoint[r->origin[i]].origin)
			return refuse(r, "key origins names what is no origin", err);
	doc->origin = r->origin;
	doc->n_origins = n;
	return VN_OK;
}

/* The details of a checkpoint, and what only they say of it. */
static vn_status find_detail(vn_document *doc, vn_reading *r, int i, vn_error *err)
{
	const json_t *x = json_array_get(doc->divergences, (size_t)i), *input;
	const json_t *inputs = json_object_get(x, "inputs"), *ref = json_object_get(x, "reference"),
				 *cand = json_object_get(x, "candidate");
	const int at = vn_document_find(doc, vn_document_member(x, "name"));
	size_t    k;

	if (at < 0 || !r->checkpoint[at].m.n)
		return refuse(r, "key divergences names what was not measured", err);
	if (!json_is_object(ref) || !json_is_object(cand) ||
	    !all_texts(json_object_get(json_object_get(x, "profile"), "words")))
		return refuse(r, "a divergence lacks reference, candidate or profile", err);
	json_array_foreach(inputs, k, input)
	{
		if (vn_document_find(doc, vn_document_member(input, "name")) < 0)
			return refuse(r, "a divergence has inputs that are no checkpoints", err);
	}
	doc->detail[i] = at;
	return VN_OK;
}

static vn_status find_details(vn_document *doc, vn_reading *r, vn_error *err)
{
	const int n = vn_document_lines(doc->divergences);
	vn_status st = VN_OK;

	doc->detail = vn_alloc_zero((size_t)n, sizeof *doc->detail);
	for (int i = 0; i < n && !st; i++)
		st = find_detail(doc, r, i, err);
	return st;
}

/* ---- the verdict --------------------------------------------------------------------------- */

/* The verdict that the checkpoints and warnings give. */
static const char *verdict_of(const vn_document *doc, bool strict)
{
	int known = 0;

	for (int i = 0; i < doc->n; i++)
		known += doc->checkpoint[i].since == VN_KNOWN || doc->checkpoint[i].since == VN_BETTER;
	return doc->n_fails || strict ? "outside" : known ? "known" : "within";
}

static vn_status check_verdict(vn_document *doc, const vn_reading *r, vn_error *err)
{
	const bool  strict = json_is_true(json_object_get(doc->strict, "decided"));
	const char *name = vn_document_text(doc->first_divergence);

	for (int i = 0; i < doc->n; i++) {
		const vn_checkpoint *p = &doc->checkpoint[i];
		doc->n_fails += p->fails;
		if (p->fails && (p->status == VN_WITHIN || p->status == VN_ACCUMULATED || p->status == VN_EQUAL))
			return refuse(r, "a checkpoint fails and is within its limits", err);
	}
	if (strcmp(vn_document_text(doc->verdict), verdict_of(doc, strict)) != 0)
		return refuse(r, "its checkpoints contradict its verdict", err);
	if (strict &&
	    (doc->n_fails || !json_is_true(json_object_get(doc->strict, "asked")) || vn_document_lines(doc->warnings) == 0))
		return refuse(r, "its warnings contradict its verdict", err);
	doc->within = strcmp(vn_document_text(doc->verdict), "outside") != 0;
	doc->first = *name ? vn_document_find(doc, name) : -1;
	if (*name ? doc->first < 0 || !doc->checkpoint[doc->first].fails : doc->n_fails > 0)
		return refuse(r, "its checkpoints contradict its first divergence", err);
	doc->divergence = doc->first >= 0 && doc->checkpoint[doc->first].m.n ? doc->first : -1;
	return VN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static vn_status read_rows(vn_reading *r, vn_json_members *m, vn_error *err)
{
	json_error_t why;
	json_t      *row;
	vn_status    st = VN_OK;
	bool         begun = false;

	if (r->checkpoint)
		return refuse(r, "key checkpoints comes twice", err);
	r->checkpoint = vn_alloc_grown(NULL, 0, sizeof *r->checkpoint);
	while (!st && vn_json_element(m, &begun, &row, &why)) {
		keep_in_line(row);
		st = vn_row_read(r, row, err);
		json_decref(row);
	}
	if (!st && *why.text)
		st = vn_fail(err, VN_ERR_FORMAT, "%s: not JSON, behind byte %d: %.120s", r->path, why.position, why.text);
	return st;
}

static vn_status read_members(vn_document *doc, vn_reading *r, const char *text, size_t bytes, vn_error *err)
{
	vn_json_members m = { .text = text, .bytes = bytes };
	json_error_t    why;
	json_t         *name, *value = NULL;
	vn_status       st = VN_OK;

	while (!st && vn_json_key(&m, &name, &why)) {
		const bool rows = strcmp(json_string_value(name), "checkpoints") == 0;
		if (rows)
			st = read_rows(r, &m, err);
		else if ((value = vn_json_value(&m, &why))) {
			keep_in_line(value);
			st = take_member(doc, r, json_string_value(name), value, err);
			json_decref(value);
		}
		json_decref(name);
		if (!rows && !value)
			break;
	}
	if (!st && *why.text)
		st = vn_fail(err, VN_ERR_FORMAT, "%s: not JSON, behind byte %d: %.120s", r->path, why.position, why.text);
	if (!st && !r->checkpoint)
		st = refuse(r, "no key checkpoints", err);
	return st;
}

vn_status vn_document_read(const char *path, vn_document *doc, vn_error *err)
{
	vn_reading *r = vn_alloc_zero(1, sizeof *r);
	char       *text = NULL;
	size_t      bytes = 0;
	vn_status   st;

	*doc = (vn_document) { .first = -1, .divergence = -1, .read = r };
	r->path = path;
	if ((st = vn_read_text(path, MOST_BYTES, &text, &bytes, err)))
		return st == VN_ERR_FORMAT ? vn_context(err, st, "a JSON report is needed") : st;
	st = text[strspn(text, " \t\r\n")] == '{'
	         ? read_members(doc, r, text, bytes, err)
	         : vn_fail(err, VN_ERR_FORMAT, "%s: not a JSON report, which vernier compare REF CAND -o FILE.json writes",
	                   path);
	free(text);
	if (st || (st = check_members(doc, r, err)) || (st = vn_reading_sort(r, err)))
		return st;
	doc->checkpoint = r->checkpoint;
	doc->n = r->n;
	doc->pooled_small = r->pooled;
	if ((st = check_verdict(doc, r, err)) || (st = find_origins(doc, r, err)) || (st = find_charged(doc, r, err)))
		return st;
	return find_details(doc, r, err);
}
