/* bpe.h: a byte-level vocabulary, its merges, and the merging of one piece.
 *
 * Tokens are given in the characters of bytelevel.h, as files hold them, and
 * kept as the bytes they stand for too. Merges are given in the order of their
 * rank. Arithmetic: specs/models.md, "Merging".
 *
 * Threads  once filled, read-only and may be shared; ids and work are one thread's.
 * Errors   "'ab' is not in the vocabulary": the caller says which file and where.
 */
#ifndef VN_LIBREF_TEXT_BPE_H
#define VN_LIBREF_TEXT_BPE_H

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ids a vocabulary may use: 16 times what the largest of today has. */
enum { VN_MOST_TOKENS = 1 << 22 };

typedef struct vn_bpe vn_bpe;

/* whole_first: a piece that is a token is taken as it is, unmerged (ignore_merges). */
vn_bpe *vn_bpe_create(bool whole_first); /* NULL without memory */
void    vn_bpe_destroy(vn_bpe *b);

/* Refused: an id or a text that is there already, an id outside [0, VN_MOST_TOKENS). */
vn_status vn_bpe_add_token(vn_bpe *b, const char *text, size_t n, int64_t id, vn_error *err);
/* All tokens come first. Refused: either side, or both together, is no token.
 * A pair given twice has its later rank, as in `tokenizers`. */
vn_status vn_bpe_add_merge(vn_bpe *b, const char *left, size_t n_left, const char *right, size_t n_right, vn_error *err);

int32_t     vn_bpe_find(const vn_bpe *b, const char *text, size_t n); /* -1: no token */
int32_t     vn_bpe_ids(const vn_bpe *b);                              /* one more than the largest */
/* As it was given, not NUL-terminated; NULL when the id has no token. */
const char *vn_bpe_text(const vn_bpe *b, int32_t id, size_t *n);

/* A list of ids that grows; start from {0}, free(id). */
typedef struct vn_ids {
	int32_t *id;
	size_t   n, room;
} vn_ids;

vn_status vn_ids_add(vn_ids *list, int32_t id, vn_error *err);

/* Memory that merging uses again; start from {0}. */
typedef struct vn_bpe_work {
	struct vn_bpe_symbol *symbol;
	struct vn_bpe_pair   *heap;
	char                 *text;
	size_t                room;
} vn_bpe_work;

void vn_bpe_work_finish(vn_bpe_work *w);

/* The tokens of one piece of raw bytes, added to out. Time: n log n. */
vn_status vn_bpe_encode(const vn_bpe *b, const char *bytes, size_t n, vn_bpe_work *w, vn_ids *out, vn_error *err);

#endif
