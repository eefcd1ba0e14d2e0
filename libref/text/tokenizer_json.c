/* tokenizer_json.c: reads a tokenizer.json of HuggingFace's `tokenizers`; its fields:
 * specs/models.md, "tokenizer.json".
 *
 * Ignored, because they change no id of a single text: truncation and padding (transformers also
 * ignores them), decoder, unk_token and fuse_unk (a byte that the vocabulary lacks is refused).
 */
#include "libref/text/tokenizer_internal.h"

#include "libref/base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NESTED = 8, PLACE = 256 };

/* Errors begin with a place such as "model.merges[17]"; vn_tokenizer_read_json adds the path. */
typedef struct tokenizer_reader {
	vn_tokenizer *t;
	vn_error     *err;
	bool          byte_level; /* seen among the pre-tokenizers */
} tokenizer_reader;

static const char *type_of(const json_t *o)
{
	const char *type = json_string_value(json_object_get(o, "type"));
	return type ? type : "(no type)";
}

static bool is_type(const json_t *o, const char *type)
{
	return strcmp(type_of(o), type) == 0;
}

/* Reads the list of a Sequence. */
static vn_status list_of(const tokenizer_reader *r, const json_t *o, const char *place, const char *key, int depth,
                         json_t **list)
{
	*list = vn_json_field(o, key);
	if (!json_is_array(*list))
		return vn_fail(r->err, VN_ERR_FORMAT, "%s: a Sequence without %s", place, key);
	return depth < MOST_NESTED ? VN_OK : vn_fail(r->err, VN_ERR_UNSUPPORTED, "%s: nested too deeply", place);
}

/* Writes "PLACE.KEY[I]", truncated to the room. */
static void write_place(char *text, const char *place, const char *key, size_t i)
{
	if (snprintf(text, PLACE, "%s.%s[%zu]", place, key, i) >= PLACE)
		text[PLACE - 1] = '\0';
}

/* Reads a boolean; *out keeps its value when it is absent. */
static vn_status read_bool(const json_t *o, const char *key, bool *out, vn_error *err)
{
	const json_t *v = vn_json_field(o, key);

	if (v && !json_is_boolean(v))
		return vn_fail(err, VN_ERR_FORMAT, "%s must be true or false", key);
	*out = v ? json_is_true(v) : *out;
	return VN_OK;
}

static vn_status truth_at(const tokenizer_reader *r, const char *place, const json_t *o, const char *key, bool *out)
{
	vn_status st = read_bool(o, key, out, r->err);
	return st ? vn_context(r->err, st, "%s", place) : VN_OK;
}

/* ---- model ------------------------------------------------------------------------- */

/* Refuses BPE options that a byte-level tokenizer does not use. */
static vn_status check_model(const tokenizer_reader *r, const json_t *model)
{
	static const char *const not_wanted[] = { "dropout", "continuing_subword_prefix", "end_of_word_suffix",
		                                      "byte_fallback" };

	if (!json_is_object(model))
		return vn_fail(r->err, VN_ERR_FORMAT, "model: missing");
	if (vn_json_field(model, "type") && !is_type(model, "BPE"))
		return vn_fail(r->err, VN_ERR_UNSUPPORTED, "model.type: '%.60s' is not supported (supported: BPE)",
		               type_of(model));
	for (size_t i = 0; i < sizeof not_wanted / sizeof *not_wanted; i++) {
		const json_t *v = vn_json_field(model, not_wanted[i]);
		if (v && !json_is_false(v) && !(json_is_string(v) && json_string_length(v) == 0))
			return vn_fail(r->err, VN_ERR_UNSUPPORTED, "model: %s is not supported", not_wanted[i]);
	}
	return VN_OK;
}

vn_status vn_tokenizer_read_vocab(vn_tokenizer *t, json_t *vocab, vn_error *err)
{
	const char *text;
	json_t     *id;
	vn_status   st = VN_OK;

	if (!json_is_object(vocab) || json_object_size(vocab) == 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s", vocab ? "not an object of tokens and their ids" : "missing");
	json_object_foreach(vocab, text, id)
	{
		if (!json_is_integer(id))
			return vn_fail(err, VN_ERR_FORMAT, "the id of '%.60s' must be a whole number", text);
		if ((st = vn_bpe_add_token(t->bpe, text, strlen(text), json_integer_value(id), err)))
			break;
	}
	return st;
}

static vn_status read_vocab(const tokenizer_reader *r, json_t *vocab)
{
	vn_status st = vn_tokenizer_read_vocab(r->t, vocab, r->err);
	return st ? vn_context(r->err, st, "model.vocab") : VN_OK;
}

/* "a b" or ["a", "b"]. */
static vn_status read_merge(const tokenizer_reader *r, const json_t *m)
{
	const json_t *left = json_array_get(m, 0), *right = json_array_get(m, 1);

	if (json_is_string(m))
		return vn_tokenizer_merge_line(r->t, json_string_value(m), json_string_length(m), r->err);
	if (json_array_size(m) != 2 || !json_is_string(left) || !json_is_string(right))
		return vn_fail(r->err, VN_ERR_FORMAT, "expected two tokens: \"a b\" or [\"a\", \"b\"]");
	return vn_bpe_add_merge(r->t->bpe, json_string_value(left), json_string_length(left), json_string_value(right),
	                        json_string_length(right), r->err);
}

static vn_status read_merges(const tokenizer_reader *r, const json_t *merges)
{
	size_t    i;
	json_t   *m;
	vn_status st;

	if (!json_is_array(merges))
		return vn_fail(r->err, VN_ERR_FORMAT, "model.merges: %s", merges ? "not a list" : "missing");
	json_array_foreach(merges, i, m) if ((st = read_merge(r, m))) return vn_context(r->err, st, "model.merges[%zu]", i);
	return VN_OK;
}

/* ---- normalizer, pre_tokenizer ------------------------------------------------------- */

/* Reads each of a Sequence's parts, which are under `name`, by `read`. */
static vn_status read_sequence(tokenizer_reader *r, const json_t *o, const char *place, const char *name, int depth,
                               vn_status (*read)(tokenizer_reader *r, const json_t *o, const char *place, int depth))
{
	json_t   *list, *one;
	size_t    i;
	char      inner[PLACE];
	vn_status st = list_of(r, o, place, name, depth, &list);

	if (st)
		return st;
	json_array_foreach(list, i, one)
	{
		write_place(inner, place, name, i);
		if ((st = read(r, one, inner, depth + 1)))
			return st;
	}
	return VN_OK;
}

static vn_status read_normalizer(tokenizer_reader *r, const json_t *o, const char *place, int depth)
{
	if (!is_type(o, "Sequence")) {
		r->t->nfc = is_type(o, "NFC");
		return r->t->nfc ? VN_OK
		                 : vn_fail(r->err, VN_ERR_UNSUPPORTED, "%s: '%.60s' is not supported (supported: NFC)", place,
		                           type_of(o));
	}
	return read_sequence(r, o, place, "normalizers", depth, read_normalizer);
}

static vn_status read_split(const tokenizer_reader *r, const json_t *o, const char *place)
{
	const json_t *pattern = vn_json_field(o, "pattern"), *regex = vn_json_field(pattern, "Regex"),
				 *text = vn_json_field(pattern, "String");
	const char   *behavior = json_string_value(vn_json_field(o, "behavior"));
	const json_t *given = regex ? regex : text;
	bool          invert = false;
	vn_status     st = truth_at(r, place, o, "invert", &invert);

	if (st)
		return st;
	if (!json_is_string(given))
		return vn_fail(r->err, VN_ERR_FORMAT, "%s: no pattern.Regex or pattern.String", place);
	if (!behavior || strcmp(behavior, "Isolated") != 0)
		return vn_fail(r->err, VN_ERR_UNSUPPORTED, "%s: behavior '%.60s' is not supported (supported: Isolated)", place,
		               behavior ? behavior : "");
	if (invert)
		return vn_fail(r->err, VN_ERR_UNSUPPORTED, "%s: invert is not supported", place);
	st = vn_tokenizer_stage(r->t, false, json_string_value(given), json_string_length(given), !regex, r->err);
	return st ? vn_context(r->err, st, "%s", place) : VN_OK;
}

static vn_status read_byte_level(tokenizer_reader *r, const json_t *o, const char *place)
{
	bool      blank = true, regex = true; /* defaults of `tokenizers` when absent */
	vn_status st;

	if ((st = truth_at(r, place, o, "add_prefix_space", &blank)) || (st = truth_at(r, place, o, "use_regex", &regex)))
		return st;
	r->byte_level = true;
	if (!blank && !regex)
		return VN_OK;
	st = vn_tokenizer_stage(r->t, blank, regex ? vn_gpt2_pattern : NULL, strlen(vn_gpt2_pattern), false, r->err);
	return st ? vn_context(r->err, st, "%s", place) : VN_OK;
}

static vn_status read_pre_tokenizer(tokenizer_reader *r, const json_t *o, const char *place, int depth)
{
	if (r->byte_level) /* the steps after it would see byte-level characters */
		return vn_fail(r->err, VN_ERR_UNSUPPORTED, "%s: a step after ByteLevel is not supported", place);
	if (is_type(o, "ByteLevel"))
		return read_byte_level(r, o, place);
	if (is_type(o, "Split"))
		return read_split(r, o, place);
	if (!is_type(o, "Sequence"))
		return vn_fail(r->err, VN_ERR_UNSUPPORTED,
		               "%s: '%.60s' is not supported (supported: ByteLevel, Split, Sequence)", place, type_of(o));
	return read_sequence(r, o, place, "pretokenizers", depth, read_pre_tokenizer);
}

/* ---- added_tokens, post_processor ------------------------------------------------------ */

vn_status vn_tokenizer_read_added(vn_tokenizer *t, const json_t *o, int64_t id, vn_error *err)
{
	vn_added_token token = { .id = (int32_t)id };
	const json_t  *content = vn_json_field(o, "content");
	bool           special = false, normalized;
	vn_status      st;

	if (!json_is_string(content))
		return vn_fail(err, VN_ERR_FORMAT, "content is missing");
	if (id < 0 || id >= VN_MOST_TOKENS)
		return vn_fail(err, VN_ERR_FORMAT, "the id is %" PRId64 ", expected 0 to %d", id, VN_MOST_TOKENS - 1);
	if ((st = read_bool(o, "special", &special, err)))
		return st;
	normalized = !special;
	if ((st = read_bool(o, "normalized", &normalized, err)) ||
	    (st = read_bool(o, "single_word", &token.single_word, err)) ||
	    (st = read_bool(o, "lstrip", &token.lstrip, err)) || (st = read_bool(o, "rstrip", &token.rstrip, err)))
		return st;
	return vn_tokenizer_add(t, &token, normalized, json_string_value(content), json_string_length(content), err);
}

static vn_status read_added_tokens(const tokenizer_reader *r, const json_t *list)
{
	size_t    i;
	json_t   *one;
	vn_status st = VN_OK;

	if (list && !json_is_array(list))
		return vn_fail(r->err, VN_ERR_FORMAT, "added_tokens: not a list");
	json_array_foreach(list, i, one)
	{
		const json_t *id = vn_json_field(one, "id");
		if (!json_is_integer(id))
			return vn_fail(r->err, VN_ERR_FORMAT, "added_tokens: [%zu] has no id", i);
		if ((st = vn_tokenizer_read_added(r->t, one, json_integer_value(id), r->err)))
			return vn_context(r->err, st, "added_tokens[%zu]", i);
	}
	return st;
}

/* The ids of one special token of a template. */
static vn_status template_ids(const tokenizer_reader *r, const json_t *o, const char *place, const char *name,
                              vn_ids *to)
{
	const json_t *ids = vn_json_field(vn_json_field(vn_json_field(o, "special_tokens"), name), "ids");
	size_t        i, ignored;
	json_t       *id;

	if (!json_is_array(ids))
		return vn_fail(r->err, VN_ERR_FORMAT, "%s: special_tokens has no ids for '%.60s'", place, name);
	json_array_foreach(ids, i, id)
	{
		const json_int_t x = json_is_integer(id) ? json_integer_value(id) : -1;
		if (x < 0 || x >= VN_MOST_TOKENS ||
		    (!vn_bpe_text(r->t->bpe, (int32_t)x, &ignored) && !vn_bpe_text(r->t->added, (int32_t)x, &ignored)))
			return vn_fail(r->err, VN_ERR_FORMAT, "%s: special_tokens: '%.60s': no token has the id %lld", place, name,
			               (long long)x);
		vn_ids_add(to, (int32_t)x);
	}
	return VN_OK;
}

static vn_status read_template(const tokenizer_reader *r, const json_t *o, const char *place)
{
	const json_t *single = vn_json_field(o, "single");
	size_t        i, texts = 0;
	json_t       *one;
	vn_status     st;

	if (!json_is_array(single))
		return vn_fail(r->err, VN_ERR_FORMAT, "%s: the template 'single' is missing", place);
	if (r->t->before.n || r->t->after.n)
		return vn_fail(r->err, VN_ERR_UNSUPPORTED, "%s: a second template is not supported", place);
	json_array_foreach(single, i, one)
	{
		const char *name = json_string_value(vn_json_field(vn_json_field(one, "SpecialToken"), "id"));
		if (vn_json_field(one, "Sequence"))
			texts++;
		else if (!name)
			return vn_fail(r->err, VN_ERR_FORMAT, "%s: single[%zu] is neither a Sequence nor a SpecialToken", place, i);
		else if ((st = template_ids(r, o, place, name, texts ? &r->t->after : &r->t->before)))
			return st;
	}
	return texts == 1
	           ? VN_OK
	           : vn_fail(r->err, VN_ERR_UNSUPPORTED,
	                     "%s: a template that holds the text %zu times is not supported (expected once)", place, texts);
}

static vn_status read_post_processor(tokenizer_reader *r, const json_t *o, const char *place, int depth)
{
	if (is_type(o, "ByteLevel")) /* offsets only */
		return VN_OK;
	if (is_type(o, "TemplateProcessing"))
		return read_template(r, o, place);
	if (!is_type(o, "Sequence"))
		return vn_fail(r->err, VN_ERR_UNSUPPORTED,
		               "%s: '%.60s' is not supported (supported: ByteLevel, TemplateProcessing, Sequence)", place,
		               type_of(o));
	return read_sequence(r, o, place, "processors", depth, read_post_processor);
}

/* ---- the file -------------------------------------------------------------------------- */

static vn_status read_all(tokenizer_reader *r, const json_t *root)
{
	json_t *model = vn_json_field(root, "model"), *normalizer = vn_json_field(root, "normalizer"),
		   *cut = vn_json_field(root, "pre_tokenizer"), *post = vn_json_field(root, "post_processor");
	const char *version = json_string_value(vn_json_field(root, "version"));
	bool        whole = false;
	vn_status   st;

	if (version && strcmp(version, "1.0") != 0)
		return vn_fail(r->err, VN_ERR_UNSUPPORTED, "version: '%.60s' is not supported (supported: 1.0)", version);
	if ((st = check_model(r, model)) || (st = truth_at(r, "model", model, "ignore_merges", &whole)))
		return st;
	r->t = vn_tokenizer_create(whole);
	if ((st = read_vocab(r, vn_json_field(model, "vocab"))) || (st = read_merges(r, vn_json_field(model, "merges"))) ||
	    (normalizer && (st = read_normalizer(r, normalizer, "normalizer", 0))) ||
	    (cut && (st = read_pre_tokenizer(r, cut, "pre_tokenizer", 0))))
		return st;
	if (!r->byte_level)
		return vn_fail(r->err, VN_ERR_UNSUPPORTED,
		               "pre_tokenizer: it has no ByteLevel step: only byte-level BPE is supported");
	if ((st = read_added_tokens(r, vn_json_field(root, "added_tokens"))) ||
	    (post && (st = read_post_processor(r, post, "post_processor", 0))))
		return st;
	vn_tokenizer_settle(r->t);
	return VN_OK;
}

vn_status vn_tokenizer_read_json(const char *path, const char *json, size_t bytes, vn_tokenizer **t, vn_error *err)
{
	tokenizer_reader r = { .err = err };
	json_error_t     je;
	json_t          *root = vn_json_load(json, bytes, JSON_REJECT_DUPLICATES, &je);
	vn_status        st;

	*t = NULL;
	if (!root)
		st = vn_fail(err, VN_ERR_FORMAT, "%s:%d:%d: not JSON: %s", path, je.line, je.column, je.text);
	else if (!json_is_object(root))
		st = vn_fail(err, VN_ERR_FORMAT, "%s: not a JSON object", path);
	else if ((st = read_all(&r, root)))
		vn_context(err, st, "%s", path);
	json_decref(root);
	if (st)
		vn_tokenizer_close(r.t);
	else
		*t = r.t;
	return st;
}
