/* tokenizer.h: text to token ids and back: byte-level BPE.
 *
 * Ids are those of HuggingFace's `tokenizers`, token for token (specs/models.md,
 * "Byte-level BPE"). A tokenizer comes from a model's directory (tokenizer.json,
 * or vocab.json with merges.txt as GPT-2 and Qwen2 have them) or from the arrays
 * of a GGUF file. Anything else that a file asks for is refused by name.
 *
 * Text is bytes. Those that are no UTF-8 are never refused: each longest run of
 * them is a piece of its own, merged like any other, and the text before and behind it
 * is tokenised as if it ended and began there. So encoding and decoding gives back
 * every byte, but for what the file itself changes (NFC, a blank put in front,
 * white space that an added token takes in).
 *
 * Ids are the file's own. `tokenizers` counts added tokens on from the
 * vocabulary and only warns when the file has other ids for them.
 *
 * Threads  an opened tokenizer is read-only and may be shared.
 * Errors   name the file and the place in it ("model.merges[17]").
 */
#ifndef VN_LIBREF_TEXT_TOKENIZER_H
#define VN_LIBREF_TEXT_TOKENIZER_H

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vn_tokenizer vn_tokenizer;

/* model: a directory, or a GGUF file. VN_ERR_NOTFOUND: it has no tokenizer. */
vn_status vn_tokenizer_open(const char *model, vn_tokenizer **t, vn_error *err);
/* The bytes of a tokenizer.json. path is for messages. */
vn_status vn_tokenizer_read_json(const char *path, const char *json, size_t bytes, vn_tokenizer **t, vn_error *err);

/* A text that is not NUL-terminated. */
typedef struct vn_word {
	const char *text;
	size_t      n;
} vn_word;

/* What a GGUF file says under tokenizer.ggml. (model "gpt2"); borrowed for the call. */
typedef struct vn_tokenizer_arrays {
	const char    *path;         /* for messages */
	const char    *pre;          /* "gpt-2", "qwen2", "qwen35", "llama-bpe" */
	const vn_word *tokens;       /* (n_tokens) by id */
	const int32_t *types;        /* (n_tokens); NULL: all normal */
	size_t         n_tokens;
	const vn_word *merges;       /* (n_merges) "left right", by rank */
	size_t         n_merges;
	int32_t        bos, eos;     /* -1: not given */
	int            add_bos, add_eos; /* 0, 1; -1: not given, as `pre` has it */
} vn_tokenizer_arrays;

vn_status vn_tokenizer_from_arrays(const vn_tokenizer_arrays *a, vn_tokenizer **t, vn_error *err);
void      vn_tokenizer_close(vn_tokenizer *t);

/* The ids of a text, *ids the caller's to free. special: put around it the tokens
 * that the model wants around a text (Llama 3: the one that begins it). Special tokens
 * written in the text itself are found either way. An empty text may have no ids. */
vn_status vn_tokenizer_encode(const vn_tokenizer *t, const char *text, size_t bytes, bool special, int32_t **ids, int64_t *n, vn_error *err);

/* The bytes of one token, not NUL-terminated; NULL for an id without one. */
const char *vn_tokenizer_bytes(const vn_tokenizer *t, int32_t id, size_t *n);

/* The same as vn_utf8_escape shows it, "" for an id without a token. The caller's
 * to free; NULL without memory. */
char *vn_tokenizer_show(const vn_tokenizer *t, int32_t id);

#endif
