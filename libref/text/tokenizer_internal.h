/* tokenizer_internal.h: a tokenizer's parts, for the files that make one. Nobody else includes it. */
#ifndef VN_LIBREF_TEXT_TOKENIZER_INTERNAL_H
#define VN_LIBREF_TEXT_TOKENIZER_INTERNAL_H

#include "libref/text/added.h"
#include "libref/text/bpe.h"
#include "libref/text/split.h"
#include "libref/text/tokenizer.h"

#include <jansson.h>

enum { VN_MOST_STAGES = 16 };

/* One step of the pre-tokenizer, applied to each piece that the one before left. */
typedef struct vn_stage {
	bool      blank; /* a blank in front of a piece that has none */
	vn_split *split; /* NULL: no further cut */
} vn_stage;

struct vn_tokenizer {
	vn_bpe  *bpe;
	vn_bpe  *added;    /* the added tokens by text and id, no merges */
	bool     nfc;
	vn_added raw;      /* found in the text as it is */
	vn_added composed; /* found after normalisation, and normalised themselves */
	vn_stage stage[VN_MOST_STAGES];
	int      n_stages;
	vn_ids   before, after; /* put around a text */
	/* What each id stands for. */
	struct vn_piece *piece; /* (n_pieces) */
	size_t   n_pieces;
	char    *text;
};

/* whole_first: as in vn_bpe_create. NULL without memory. */
vn_tokenizer *vn_tokenizer_create(bool whole_first);
/* After the vocabulary and nfc. Refused: an id that the vocabulary or another added
 * token has under another text, a text that is there under another id, what
 * vn_added_put refuses. */
vn_status vn_tokenizer_add(vn_tokenizer *t, const vn_added_token *token, bool normalized, const char *text, size_t n,
                           vn_error *err);
/* One more stage: cut by a pattern (NULL: none). */
vn_status vn_tokenizer_stage(vn_tokenizer *t, bool blank, const char *pattern, size_t bytes, bool literal, vn_error *err);
/* "left right": one merge, as merges.txt and GGUF write it. */
vn_status vn_tokenizer_merge_line(vn_tokenizer *t, const char *line, size_t n, vn_error *err);
/* After everything else: make it ready to use. */
vn_status vn_tokenizer_settle(vn_tokenizer *t, vn_error *err);

/* The patterns of specs/models.md, "Pre-tokenizer patterns", with what goes with each. */
typedef struct vn_pre {
	const char *name;    /* in GGUF files */
	const char *pattern;
	bool        nfc, whole_first, add_bos;
} vn_pre;

extern const char     vn_gpt2_pattern[];
const vn_pre        *vn_pre_find(const char *name); /* NULL: unknown */
extern const char     vn_pre_names[];   /* "gpt-2, qwen2..." for messages */

/* Tokens and their ids as one object; an added token as tokenizer.json and
 * tokenizer_config.json describe it. */
vn_status vn_tokenizer_read_vocab(vn_tokenizer *t, json_t *vocab, vn_error *err);
vn_status vn_tokenizer_read_added(vn_tokenizer *t, const json_t *o, int64_t id, vn_error *err);
/* The vocabulary inside an opened GGUF file (libref/model/gguf.h). VN_ERR_NOTFOUND: none. */
struct vn_gguf;
vn_status vn_tokenizer_of_gguf(const struct vn_gguf *f, vn_tokenizer **t, vn_error *err);

#endif
