/* added.h: finds added tokens, which are matched in a text before anything else.
 *
 * specs/models.md, "Added tokens and normalisation": the leftmost match, and of those the longest.
 * single_word: no word character next to it; lstrip and rstrip: includes adjacent white space.
 * Texts are bytes; a byte that is not UTF-8 is neither a word character nor white space.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VN_LONGEST_ADDED = 1024 }; /* bytes of a token; bounds the search time */

typedef struct vn_added_token {
	char   *text; /* well-formed UTF-8, NUL-terminated, owned */
	size_t  n;
	int32_t id;
	bool    single_word, lstrip, rstrip;
	size_t  order; /* order of insertion */
} vn_added_token;

/* A set of added tokens; start from {0}. */
typedef struct vn_added {
	vn_added_token *token; /* (n), sorted by text once settled */
	size_t          n;
	size_t          first[257]; /* tokens that begin with byte b: [first[b], first[b+1]) */
} vn_added;

void      vn_added_finish(vn_added *a);
/* Adds a token. Fails if it is empty, longer than VN_LONGEST_ADDED, or contains a zero byte. Of
 * `token`, only id and the three flags are used; text is copied. */
vn_status vn_added_put(vn_added *a, const vn_added_token *token, const char *text, size_t n, vn_error *err);
/* Call after the last put. If a text was put twice, the first token is used. */
void      vn_added_settle(vn_added *a);

/* A search; start from {0}. */
typedef struct vn_added_search {
	size_t at;   /* where the search continues */
	size_t done; /* end of the last token with its white space */
} vn_added_search;

/* Finds the next token, at [*from, *to). The text between the previous `done` and *from is ordinary
 * (none if *from is less). Returns NULL after the last. */
const vn_added_token *vn_added_next(const vn_added *a, const char *text, size_t n, vn_added_search *s, size_t *from,
                                    size_t *to);
