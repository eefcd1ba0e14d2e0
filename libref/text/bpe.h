/* bpe.h: a byte-level vocabulary with its merges, and the tokenisation of one piece.
 *
 * Tokens are given in the characters of bytelevel.h, as in files, and are also kept as bytes.
 * Merges are given in order of rank. Algorithm: specs/models.md, "Merging".
 *
 * Threads  once filled, a vn_bpe is read-only and may be shared; ids and work belong to one thread.
 * Errors   "'ab' is not in the vocabulary": the caller adds the file and the place.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limit on ids: 16 times the largest vocabulary of today. */
enum { VN_MOST_TOKENS = 1 << 22 };

/* Returns how many of the n bytes of a token's text a message quotes, for %.*s. */
static inline int vn_bpe_quoted(size_t n)
{
	return n > 60 ? 60 : (int)n;
}

typedef struct vn_bpe vn_bpe;

/* whole_first: a piece that is a token is not merged (ignore_merges). Returns NULL without
 * memory. */
vn_bpe *vn_bpe_create(bool whole_first); /* NULL without memory */
void    vn_bpe_destroy(vn_bpe *b);

/* Fails on an id or a text that is there already, and on an id outside [0, VN_MOST_TOKENS). */
vn_status vn_bpe_add_token(vn_bpe *b, const char *text, size_t n, int64_t id, vn_error *err);
/* Call after all tokens. Fails if either side, or both together, is not a token. A repeated pair
 * gets its later rank, as in `tokenizers`. */
vn_status vn_bpe_add_merge(vn_bpe *b, const char *left, size_t n_left, const char *right, size_t n_right,
                           vn_error *err);

int32_t     vn_bpe_find(const vn_bpe *b, const char *text, size_t n); /* -1: not a token */
int32_t     vn_bpe_ids(const vn_bpe *b);                              /* largest id + 1 */
/* Returns a token's text as it was given, not NUL-terminated; NULL if the id has no token. */
const char *vn_bpe_text(const vn_bpe *b, int32_t id, size_t *n);

/* A growing list of ids; start from {0}, free(id). */
typedef struct vn_ids {
	int32_t *id;
	size_t   n, room;
} vn_ids;

void vn_ids_add(vn_ids *list, int32_t id);

/* Memory that merging reuses; start from {0}. */
typedef struct vn_bpe_work {
	struct vn_bpe_symbol *symbol;
	struct vn_bpe_pair   *heap;
	char                 *text;
	size_t                room;
} vn_bpe_work;

void vn_bpe_work_finish(vn_bpe_work *w);

/* Appends the tokens of one piece of raw bytes to out. Time: n log n. */
vn_status vn_bpe_encode(const vn_bpe *b, const char *bytes, size_t n, vn_bpe_work *w, vn_ids *out, vn_error *err);
