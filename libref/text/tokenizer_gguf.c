/* tokenizer_gguf.c: the vocabulary inside a GGUF file, handed on as arrays. */
#include "libref/text/tokenizer_internal.h"

#include "libref/model/gguf.h"

#include <stdlib.h>
#include <string.h>

/* Reads an optional list of strings. The caller frees *words. */
static vn_status read_words(const vn_gguf *f, const char *key, vn_word **words, size_t *n, vn_error *err)
{
	const vn_gguf_value *v = vn_gguf_get(f, key);

	if (!v)
		return VN_OK;
	if (!v->array || v->type != VN_GGUF_STRING)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s must be a list of strings", vn_gguf_path(f), key);
	if (!(*words = malloc((v->n + 1) * sizeof **words)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %zu strings", vn_gguf_path(f), v->n);
	for (*n = 0; *n < v->n; ++*n)
		(*words)[*n] = (vn_word) { v->text[*n].data, v->text[*n].bytes };
	return VN_OK;
}

/* Reads an optional list with a number for each token. */
static vn_status read_types(const vn_gguf *f, size_t n, int32_t **types, vn_error *err)
{
	static const char    key[] = "tokenizer.ggml.token_type";
	const vn_gguf_value *v = vn_gguf_get(f, key);

	if (!v)
		return VN_OK;
	if (!v->array || v->n != n)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s has %zu elements, expected %zu (one for each token)",
		               vn_gguf_path(f), key, v->n, n);
	if (!(*types = malloc((n + 1) * sizeof **types)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %zu types", vn_gguf_path(f), n);
	for (size_t i = 0; i < n; i++) {
		int64_t x;
		if (!vn_gguf_int_at(v, i, &x) || x < 0 || x > INT32_MAX)
			return vn_fail(err, VN_ERR_FORMAT, "%s: %s[%zu] is not a type of token", vn_gguf_path(f), key, i);
		(*types)[i] = (int32_t)x;
	}
	return VN_OK;
}

static vn_status read_id(const vn_gguf *f, const char *key, int32_t *id, vn_error *err)
{
	const vn_gguf_value *v = vn_gguf_get(f, key);
	int64_t              x = -1;

	if (v && (v->array || !vn_gguf_int_at(v, 0, &x) || x < 0 || x >= VN_MOST_TOKENS))
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s must be the id of a token", vn_gguf_path(f), key);
	*id = (int32_t)x;
	return VN_OK;
}

static vn_status read_wish(const vn_gguf *f, const char *key, int *wish, vn_error *err)
{
	const vn_gguf_value *v = vn_gguf_get(f, key);
	bool                 yes = false;

	if (v && (v->array || !vn_gguf_bool_at(v, 0, &yes)))
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s must be true or false", vn_gguf_path(f), key);
	*wish = v ? yes : -1;
	return VN_OK;
}

static vn_status read_pre(const vn_gguf *f, char *pre, size_t room, vn_error *err)
{
	static const char key[] = "tokenizer.ggml.pre";
	vn_gguf_text      text;

	if (!vn_gguf_text_at(vn_gguf_get(f, key), 0, &text) || text.bytes >= room || memchr(text.data, '\0', text.bytes))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %s is missing or unknown (supported: %s)", vn_gguf_path(f), key,
		               vn_pre_names);
	memcpy(pre, text.data, text.bytes);
	pre[text.bytes] = '\0';
	return VN_OK;
}

vn_status vn_tokenizer_of_gguf(const vn_gguf *f, vn_tokenizer **t, vn_error *err)
{
	vn_tokenizer_arrays a = { .path = vn_gguf_path(f) };
	vn_word            *tokens = NULL, *merges = NULL;
	int32_t            *types = NULL;
	char                pre[64];
	vn_status           st;

	*t = NULL;
	if (!vn_gguf_get(f, "tokenizer.ggml.model"))
		return vn_fail(err, VN_ERR_NOTFOUND, "%s: the file holds no tokenizer (tokenizer.ggml.model is missing)",
		               a.path);
	if (!vn_gguf_is(vn_gguf_get(f, "tokenizer.ggml.model"), "gpt2"))
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: tokenizer.ggml.model is not supported (supported: gpt2, a byte-level BPE)", a.path);
	if (!vn_gguf_get(f, "tokenizer.ggml.merges"))
		return vn_fail(err, VN_ERR_FORMAT, "%s: tokenizer.ggml.merges: missing", a.path);
	if ((st = read_pre(f, pre, sizeof pre, err)) ||
	    (st = read_words(f, "tokenizer.ggml.tokens", &tokens, &a.n_tokens, err)) ||
	    (st = read_words(f, "tokenizer.ggml.merges", &merges, &a.n_merges, err)) ||
	    (st = read_types(f, a.n_tokens, &types, err)) ||
	    (st = read_id(f, "tokenizer.ggml.bos_token_id", &a.bos, err)) ||
	    (st = read_id(f, "tokenizer.ggml.eos_token_id", &a.eos, err)) ||
	    (st = read_wish(f, "tokenizer.ggml.add_bos_token", &a.add_bos, err)) ||
	    (st = read_wish(f, "tokenizer.ggml.add_eos_token", &a.add_eos, err)))
		goto done;
	a.pre = pre;
	a.tokens = tokens;
	a.merges = merges;
	a.types = types;
	st = vn_tokenizer_from_arrays(&a, t, err);
done:
	free(tokens);
	free(merges);
	free(types);
	return st;
}
