/* tokenizer_gguf.c: makes a tokenizer of the vocabulary in a GGUF file. Its keys: specs/models.md,
 * "Metadata keys".
 *
 * A GGUF file says less than a tokenizer.json: nothing about normalisation, white space next to
 * added tokens, or whole pieces before merges. These follow from the name of the pre-tokenizer, as
 * in the HuggingFace files of such models.
 */
#include "libref/text/tokenizer_internal.h"

#include "libref/model/gguf.h"

#include <stdio.h>
#include <string.h>

/* token_type */
enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };

/* Lists of the file. */
typedef struct vocabulary {
	const vn_gguf_value *tokens, *merges; /* strings */
	const vn_gguf_value *types;           /* a number for each token; NULL: not given, all normal */
} vocabulary;

/* Reads an optional list of strings. */
static vn_status read_words(const vn_gguf *f, const char *key, const vn_gguf_value **words, vn_error *err)
{
	static const vn_gguf_value none = { .array = true, .type = VN_GGUF_STRING };
	const vn_gguf_value       *v = vn_gguf_get(f, key);

	*words = v ? v : &none;
	if (!(*words)->array || (*words)->type != VN_GGUF_STRING)
		return vn_fail(err, VN_ERR_FORMAT, "%s must be a list of strings", key);
	return VN_OK;
}

/* Reads an optional list with a number for each of n tokens. */
static vn_status read_types(const vn_gguf *f, size_t n, const vn_gguf_value **types, vn_error *err)
{
	static const char    key[] = "tokenizer.ggml.token_type";
	const vn_gguf_value *v = *types = vn_gguf_get(f, key);
	int64_t              x;

	if (v && (!v->array || v->n != n))
		return vn_fail(err, VN_ERR_FORMAT, "%s has %zu elements, expected %zu (one for each token)", key, v->n, n);
	for (size_t i = 0; v && i < n; i++)
		if (!vn_gguf_int_at(v, i, &x) || x < 0 || x > INT32_MAX)
			return vn_fail(err, VN_ERR_FORMAT, "%s[%zu] is not a type of token", key, i);
	return VN_OK;
}

static vn_status read_pre(const vn_gguf *f, const vn_pre **pre, vn_error *err)
{
	static const char key[] = "tokenizer.ggml.pre";
	char              name[64];
	vn_gguf_text      text;

	if (!vn_gguf_text_at(vn_gguf_get(f, key), 0, &text) || text.bytes >= sizeof name ||
	    memchr(text.data, '\0', text.bytes))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s is missing or unknown (supported: %s)", key, vn_pre_names);
	snprintf(name, sizeof name, "%.*s", (int)text.bytes, text.data);
	return (*pre = vn_pre_find(name)) ? VN_OK
	                                  : vn_fail(err, VN_ERR_UNSUPPORTED, "%s '%.60s' is not supported (supported: %s)",
	                                            key, name, vn_pre_names);
}

static vn_status fill_vocabulary(const vocabulary *v, vn_tokenizer *t, vn_error *err)
{
	const vn_gguf_text *token = v->tokens->text, *merge = v->merges->text;
	int64_t             type;
	vn_status           st;

	for (size_t i = 0; i < v->tokens->n; i++)
		if ((st = vn_bpe_add_token(t->bpe, token[i].data, token[i].bytes, (int64_t)i, err)))
			return vn_context(err, st, "tokenizer.ggml.tokens[%zu]", i);
	for (size_t i = 0; i < v->merges->n; i++)
		if ((st = vn_tokenizer_merge_line(t, merge[i].data, merge[i].bytes, err)))
			return vn_context(err, st, "tokenizer.ggml.merges[%zu]", i);
	for (size_t i = 0; v->types && vn_gguf_int_at(v->types, i, &type); i++) {
		const vn_added_token added = { .id = (int32_t)i };
		if (type < NORMAL || type > BYTE)
			return vn_fail(err, VN_ERR_FORMAT, "tokenizer.ggml.token_type[%zu] is %d, an unknown type of token", i,
			               (int)type);
		if ((type == CONTROL || type == USER_DEFINED) &&
		    (st = vn_tokenizer_add(t, &added, false, token[i].data, token[i].bytes, err)))
			return vn_context(err, st, "tokenizer.ggml.tokens[%zu]", i);
	}
	return VN_OK;
}

/* Adds the token that begins or ends a text, if it is wanted. which: "bos" or "eos"; wanted: unless
 * the file says otherwise. */
static vn_status read_boundary(const vn_gguf *f, const char *which, bool wanted, size_t n_tokens, vn_ids *to,
                               vn_error *err)
{
	char    id_key[64], add_key[64];
	int64_t id = -1;

	snprintf(id_key, sizeof id_key, "tokenizer.ggml.%s_token_id", which);
	snprintf(add_key, sizeof add_key, "tokenizer.ggml.add_%s_token", which);
	const vn_gguf_value *v = vn_gguf_get(f, id_key), *add = vn_gguf_get(f, add_key);
	if (v && (v->array || !vn_gguf_int_at(v, 0, &id) || id < 0 || id >= VN_MOST_TOKENS))
		return vn_fail(err, VN_ERR_FORMAT, "%s must be the id of a token", id_key);
	if (add && (add->array || !vn_gguf_bool_at(add, 0, &wanted)))
		return vn_fail(err, VN_ERR_FORMAT, "%s must be true or false", add_key);
	if (!wanted)
		return VN_OK;
	if (id < 0 || (size_t)id >= n_tokens)
		return vn_fail(err, VN_ERR_FORMAT, "%s is missing or names no token of the vocabulary", id_key);
	vn_ids_add(to, (int32_t)id);
	return VN_OK;
}

static vn_status read_all(const vn_gguf *f, vn_tokenizer **t, vn_error *err)
{
	const vn_pre *pre;
	vocabulary    v;
	vn_status     st;

	if (!vn_gguf_get(f, "tokenizer.ggml.model"))
		return vn_fail(err, VN_ERR_NOTFOUND, "the file holds no tokenizer (tokenizer.ggml.model is missing)");
	if (!vn_gguf_is(vn_gguf_get(f, "tokenizer.ggml.model"), "gpt2"))
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "tokenizer.ggml.model is not supported (supported: gpt2, a byte-level BPE)");
	if (!vn_gguf_get(f, "tokenizer.ggml.merges"))
		return vn_fail(err, VN_ERR_FORMAT, "tokenizer.ggml.merges: missing");
	if ((st = read_pre(f, &pre, err)) || (st = read_words(f, "tokenizer.ggml.tokens", &v.tokens, err)) ||
	    (st = read_words(f, "tokenizer.ggml.merges", &v.merges, err)) ||
	    (st = read_types(f, v.tokens->n, &v.types, err)))
		return st;
	if (v.tokens->n == 0 || v.tokens->n > VN_MOST_TOKENS)
		return vn_fail(err, VN_ERR_FORMAT, "tokenizer.ggml.tokens: %zu tokens", v.tokens->n);
	*t = vn_tokenizer_create(pre->whole_first);
	(*t)->nfc = pre->nfc;
	if ((st = fill_vocabulary(&v, *t, err)) ||
	    (st = vn_tokenizer_stage(*t, false, pre->pattern, strlen(pre->pattern), false, err)) ||
	    (st = read_boundary(f, "bos", pre->add_bos, v.tokens->n, &(*t)->before, err)) ||
	    (st = read_boundary(f, "eos", false, v.tokens->n, &(*t)->after, err)))
		return st;
	vn_tokenizer_settle(*t);
	return VN_OK;
}

vn_status vn_tokenizer_of_gguf(const vn_gguf *f, vn_tokenizer **t, vn_error *err)
{
	*t = NULL;
	const vn_status st = read_all(f, t, err);
	if (st) {
		vn_context(err, st, "%s", vn_gguf_path(f));
		vn_tokenizer_close(*t);
		*t = NULL;
	}
	return st;
}
