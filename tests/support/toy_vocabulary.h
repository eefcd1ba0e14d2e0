/* toy_vocabulary.h: a tokenizer from a GGUF file that holds a vocabulary and nothing else. */
#pragma once

#include "libref/model/gguf.h"
#include "libref/text/tokenizer_internal.h"
#include "tests/support/toy_gguf.h"

/* A text that is not NUL-terminated. */
typedef struct toy_word {
	const char *text;
	size_t      n;
} toy_word;

typedef struct toy_vocabulary {
	const char     *path, *pre;
	const toy_word *tokens; /* (n_tokens) by id */
	const int32_t  *types;  /* (n_tokens); NULL: not given */
	size_t          n_tokens;
	const toy_word *merges; /* (n_merges) "left right", by rank */
	size_t          n_merges;
	int32_t         bos, eos;         /* -1: not given */
	int             add_bos, add_eos; /* 0, 1; -1: not given */
} toy_vocabulary;

static inline void toy_put_words(toy_gguf *g, const char *key, const toy_word *word, size_t n)
{
	gg_key_array(g, key, GG_STRING, n);
	for (size_t i = 0; i < n; i++) {
		gg_u64(g, word[i].n);
		gg_bytes(g, word[i].text, word[i].n);
	}
}

static inline void toy_put_boundary(toy_gguf *g, const char *id_key, int32_t id, const char *add_key, int add)
{
	if (id >= 0)
		gg_key_u32(g, id_key, (uint32_t)id);
	if (add >= 0) {
		gg_key(g, add_key, GG_BOOL);
		gg_bytes(g, add ? "\1" : "\0", 1);
	}
}

static inline vn_status toy_read_vocabulary(const toy_vocabulary *v, vn_tokenizer **t, vn_error *err)
{
	toy_gguf g;
	vn_gguf *file;

	gg_start(&g, 3);
	gg_key_text(&g, "tokenizer.ggml.model", "gpt2");
	gg_key_text(&g, "tokenizer.ggml.pre", v->pre);
	toy_put_words(&g, "tokenizer.ggml.tokens", v->tokens, v->n_tokens);
	toy_put_words(&g, "tokenizer.ggml.merges", v->merges, v->n_merges);
	if (v->types) {
		gg_key_array(&g, "tokenizer.ggml.token_type", GG_I32, v->n_tokens);
		gg_bytes(&g, v->types, v->n_tokens * sizeof *v->types);
	}
	toy_put_boundary(&g, "tokenizer.ggml.bos_token_id", v->bos, "tokenizer.ggml.add_bos_token", v->add_bos);
	toy_put_boundary(&g, "tokenizer.ggml.eos_token_id", v->eos, "tokenizer.ggml.add_eos_token", v->add_eos);
	vn_status st = vn_gguf_parse(v->path, g.p, g.n, &file, err);
	*t = NULL;
	if (!st)
		st = vn_tokenizer_of_gguf(file, t, err);
	vn_gguf_close(file);
	gg_free(&g);
	return st;
}
