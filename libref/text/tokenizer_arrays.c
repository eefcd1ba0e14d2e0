/* tokenizer_arrays.c: makes a tokenizer of the arrays of a GGUF file. Their keys: specs/models.md,
 * "Metadata keys".
 *
 * A GGUF file says less than a tokenizer.json: nothing about normalisation, white space next to
 * added tokens, or whole pieces before merges. These follow from the name of the pre-tokenizer, as
 * in the HuggingFace files of such models.
 */
#include "libref/text/tokenizer_internal.h"

#include <string.h>

/* token_type */
enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };

static vn_status fill_vocabulary(const vn_tokenizer_arrays *a, vn_tokenizer *t, vn_error *err)
{
	vn_status st;

	for (size_t i = 0; i < a->n_tokens; i++)
		if ((st = vn_bpe_add_token(t->bpe, a->tokens[i].text, a->tokens[i].n, (int64_t)i, err)))
			return vn_context(err, st, "tokenizer.ggml.tokens[%zu]", i);
	for (size_t i = 0; i < a->n_merges; i++)
		if ((st = vn_tokenizer_merge_line(t, a->merges[i].text, a->merges[i].n, err)))
			return vn_context(err, st, "tokenizer.ggml.merges[%zu]", i);
	for (size_t i = 0; a->types && i < a->n_tokens; i++) {
		const vn_added_token token = { .id = (int32_t)i };
		if (a->types[i] < NORMAL || a->types[i] > BYTE)
			return vn_fail(err, VN_ERR_FORMAT, "tokenizer.ggml.token_type[%zu] is %d, an unknown type of token", i,
			               a->types[i]);
		if ((a->types[i] == CONTROL || a->types[i] == USER_DEFINED) &&
		    (st = vn_tokenizer_add(t, &token, false, a->tokens[i].text, a->tokens[i].n, err)))
			return vn_context(err, st, "tokenizer.ggml.tokens[%zu]", i);
	}
	return VN_OK;
}

/* Looks up the token that begins or ends a text, if it is wanted. */
static vn_status add_boundary_token(const vn_tokenizer_arrays *a, bool wanted, const char *key, int32_t id, vn_ids *to,
                                    vn_error *err)
{
	if (!wanted)
		return VN_OK;
	if (id < 0 || (size_t)id >= a->n_tokens)
		return vn_fail(err, VN_ERR_FORMAT, "tokenizer.ggml.%s is missing or names no token of the vocabulary", key);
	return vn_ids_add(to, id, err);
}

vn_status vn_tokenizer_from_arrays(const vn_tokenizer_arrays *a, vn_tokenizer **t, vn_error *err)
{
	const vn_pre *pre = a->pre ? vn_pre_find(a->pre) : NULL;
	vn_status     st;

	*t = NULL;
	if (!pre)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: tokenizer.ggml.pre '%.60s' is not supported (supported: %s)",
		               a->path, a->pre ? a->pre : "", vn_pre_names);
	if (a->n_tokens == 0 || a->n_tokens > VN_MOST_TOKENS)
		return vn_fail(err, VN_ERR_FORMAT, "%s: tokenizer.ggml.tokens: %zu tokens", a->path, a->n_tokens);
	if (!(*t = vn_tokenizer_create(pre->whole_first)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", a->path);
	(*t)->nfc = pre->nfc;
	if ((st = fill_vocabulary(a, *t, err)) ||
	    (st = vn_tokenizer_stage(*t, false, pre->pattern, strlen(pre->pattern), false, err)) ||
	    (st = add_boundary_token(a, a->add_bos < 0 ? pre->add_bos : a->add_bos > 0, "bos_token_id", a->bos,
	                             &(*t)->before, err)) ||
	    (st = add_boundary_token(a, a->add_eos > 0, "eos_token_id", a->eos, &(*t)->after, err)) ||
	    (st = vn_tokenizer_settle(*t, err))) {
		vn_context(err, st, "%s", a->path);
		vn_tokenizer_close(*t);
		*t = NULL;
	}
	return st;
}
