/* added.h: tokens that are found in a text as they are written, before all else.
 *
 * specs/models.md, "Added tokens and normalisation": leftmost, and of those the
 * longest; single_word wants no word character beside it; lstrip and rstrip take
 * the white space beside it too. Texts are bytes; a byte that is no UTF-8 is
 * neither a word character nor white space.
 */
#ifndef VN_LIBREF_TEXT_ADDED_H
#define VN_LIBREF_TEXT_ADDED_H

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VN_LONGEST_ADDED = 1024 }; /* bytes of one; bounds the time of a search */

typedef struct vn_added_token {
	char   *text; /* well-formed UTF-8, NUL-terminated, owned */
	size_t  n;
	int32_t id;
	bool    single_word, lstrip, rstrip;
	size_t  order; /* of being put */
} vn_added_token;

/* A set of them; start from {0}. */
typedef struct vn_added {
	vn_added_token *token; /* (n), sorted by text once settled */
	size_t          n, room;
	size_t          first[257]; /* tokens that begin with byte b: first[b] up to first[b+1] */
} vn_added;

void      vn_added_finish(vn_added *a);
/* Refused: empty, longer than VN_LONGEST_ADDED, with a zero byte. Of token only
 * the id and the three words matter; text is copied. */
vn_status vn_added_put(vn_added *a, const vn_added_token *token, const char *text, size_t n, vn_error *err);
/* To be called after the last put. Of a text put twice the first stays. */
void      vn_added_settle(vn_added *a);

/* A search; start from {0}. */
typedef struct vn_added_search {
	size_t at;   /* where the search goes on */
	size_t done; /* the end of the last token with its white space */
} vn_added_search;

/* The next token: it covers [*from, *to), and from the earlier `done` up to *from
 * is ordinary text (none when *from is less). NULL after the last. */
const vn_added_token *vn_added_next(const vn_added *a, const char *text, size_t n, vn_added_search *s, size_t *from, size_t *to);

#endif
