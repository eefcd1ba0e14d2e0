/* nearest.h: finds the word that was probably meant by a misspelt one: "did you mean q_rope?".
 *
 *	vn_nearest n;
 *	vn_nearest_start(&n, "q_rop");
 *	for (...)
 *		vn_nearest_try(&n, name[i]);
 *	fail("no checkpoint named 'q_rop'%s", vn_nearest_hint(&n));
 *
 * Two words are near if they differ by a few letters removed, added, replaced, or exchanged with
 * their neighbour. Case is ignored, and "-" equals "_". A "*" in the misspelt word stands for any
 * letters, so that globs have neighbours too.
 *
 * Owner  the misspelt word is borrowed, candidates are copied.
 */
#pragma once

enum { VN_NEAREST_MAX = 256 }; /* longer words have no neighbours */

typedef struct vn_nearest {
	const char *word;
	int         distance; /* of the best; above the allowed number: none */
	char        best[VN_NEAREST_MAX];
	char        hint[VN_NEAREST_MAX + 32];
} vn_nearest;

/* Returns how many letters must be removed, added, replaced or exchanged with their neighbour to
 * make b from a. */
int vn_nearest_distance(const char *a, const char *b);

void        vn_nearest_start(vn_nearest *n, const char *word);
/* Tries a candidate. Of equally near ones the first stays. */
void        vn_nearest_try(vn_nearest *n, const char *candidate);
/* Tries each word of a list "a|b|c". */
void        vn_nearest_try_words(vn_nearest *n, const char *words);
/* Sets the result, if it is known in another way. */
void        vn_nearest_settle(vn_nearest *n, const char *candidate);
/* Returns the nearest candidate, or NULL if none is near. */
const char *vn_nearest_found(const vn_nearest *n);
/* Returns " (did you mean 'compare'?)", or "". */
const char *vn_nearest_hint(vn_nearest *n);
/* The hint for a path that is not there: a file or folder beside it with a near name and the same
 * ending, or of the same name but for the ending. */
const char *vn_nearest_beside(vn_nearest *n, const char *path);
