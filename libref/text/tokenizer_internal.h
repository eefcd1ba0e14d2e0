/* tokenizer_internal.h: the parts of a tokenizer, for the files that build one; included nowhere
 * else. */
#pragma once

#include "libref/text/added.h"
#include "libref/text/bpe.h"
#include "libref/text/split.h"
#include "libref/text/tokenizer.h"

#include <jansson.h>

enum { VN_MOST_STAGES = 16 };

/* One stage of the pre-tokenizer, applied to each piece of the stage before. */
typedef struct vn_stage {
	bool      blank; /* inserts a blank before a piece that does not begin with one */
	vn_split *split; /* NULL: no split */
} vn_stage;

struct vn_tokenizer {
	vn_bpe  *bpe;
	vn_bpe  *added; /* the added tokens by text and id, without merges */
	bool     nfc;
	vn_added raw;      /* matched in the unnormalised text */
	vn_added composed; /* matched after normalisation, and normalised themselves */
	vn_stage stage[VN_MOST_STAGES];
	int      n_stages;
	vn_ids   before, after; /* added around a text */
};

/* whole_first: as in vn_bpe_create. NULL without memory. */
vn_tokenizer *vn_tokenizer_create(bool whole_first);
/* Adds an added token. Call after the vocabulary and nfc are set. Fails on an id that has another
 * text, on a text that has another id, and as vn_added_put. */
vn_status vn_tokenizer_add(vn_tokenizer *t, const vn_added_token *token, bool normalized, const char *text, size_t n,
                           vn_error *err);
/* Adds a stage: splits by a pattern (NULL: does not split). */
vn_status vn_tokenizer_stage(vn_tokenizer *t, bool blank, const char *pattern, size_t bytes, bool literal,
                             vn_error *err);
/* Adds one merge "left right", as in merges.txt and GGUF. */
vn_status vn_tokenizer_merge_line(vn_tokenizer *t, const char *line, size_t n, vn_error *err);
/* Call last: makes the tokenizer ready for use. */
void      vn_tokenizer_settle(vn_tokenizer *t);

/* The patterns of specs/models.md, "Pre-tokenizer patterns", with their settings. */
typedef struct vn_pre {
	const char *name; /* in GGUF files */
	const char *pattern;
	bool        nfc, whole_first, add_bos;
} vn_pre;

extern const char vn_gpt2_pattern[];
const vn_pre     *vn_pre_find(const char *name); /* NULL: unknown */
extern const char vn_pre_names[];                /* "gpt-2, qwen2..." for messages */

/* Read tokens with their ids from one object (vocab); or one added token, in the form of
 * tokenizer.json and tokenizer_config.json (added). */
vn_status vn_tokenizer_read_vocab(vn_tokenizer *t, json_t *vocab, vn_error *err);
vn_status vn_tokenizer_read_added(vn_tokenizer *t, const json_t *o, int64_t id, vn_error *err);
/* Reads the vocabulary of an opened GGUF file (libref/model/gguf.h). VN_ERR_NOTFOUND: it has
 * none. */
struct vn_gguf;
vn_status vn_tokenizer_of_gguf(const struct vn_gguf *f, vn_tokenizer **t, vn_error *err);
