/* tokenizer.h: converts text to token ids and back: byte-level BPE.
 *
 * Ids are those of HuggingFace's `tokenizers`, token for token (specs/models.md, "Byte-level BPE").
 * A tokenizer comes from a model's directory (tokenizer.json, or vocab.json with merges.txt as for
 * GPT-2 and Qwen2) or from a GGUF file. Unsupported settings in a file are rejected
 * with an error that names them.
 *
 * Text is bytes. Invalid UTF-8 is never refused: each longest run of invalid bytes is a piece of
 * its own, merged like any other, and the text before and after it is tokenised as if it ended and
 * began there. So encoding and decoding restores every byte, except for what the file itself
 * changes (NFC, a blank inserted at the start, white space that an added token includes).
 *
 * Ids are those in the file. `tokenizers` numbers added tokens from the end of the vocabulary, and
 * only warns if the file has other ids for them.
 *
 * Threads  an opened tokenizer is read-only and may be shared.
 * Errors   name the file and the place in it ("model.merges[17]").
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vn_tokenizer vn_tokenizer;

/* model: a directory, or a GGUF file. VN_ERR_NOTFOUND: it has no tokenizer. */
vn_status vn_tokenizer_open(const char *model, vn_tokenizer **t, vn_error *err);
/* Reads the bytes of a tokenizer.json. path: for messages. */
vn_status vn_tokenizer_read_json(const char *path, const char *json, size_t bytes, vn_tokenizer **t, vn_error *err);

void vn_tokenizer_close(vn_tokenizer *t);

/* Converts a text to ids; the caller frees *ids. special: adds the tokens that the model expects
 * around a text (Llama 3: the one at its start). Special tokens written in the text are found in
 * any case. An empty text may have no ids. */
vn_status vn_tokenizer_encode(const vn_tokenizer *t, const char *text, size_t bytes, bool special, int32_t **ids,
                              int64_t *n, vn_error *err);

/* Returns the bytes of one token, escaped as by vn_utf8_escape; "" if the id has no token. The
 * caller frees the result; NULL without memory. */
char *vn_tokenizer_show(const vn_tokenizer *t, int32_t id);
