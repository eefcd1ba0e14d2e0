/* nearest.h: the word that a misspelt word stands for, "did you mean q_rope?".
 *
 *	vn_nearest n;
 *	vn_nearest_start(&n, "q_rop");
 *	for (...)
 *		vn_nearest_try(&n, name[i]);
 *	fail("no checkpoint named 'q_rop'%s", vn_nearest_hint(&n));
 *
 * Near is what differs by a few letters left out, added, replaced, or exchanged with their neighbour. Case does not count,
 * and "-" is "_". A "*" in the misspelt word stands for any letters, so that globs have neighbours too.
 *
 * Ownership  the word is borrowed, what is tried is copied.
 */
#ifndef VN_LIBREF_BASE_NEAREST_H
#define VN_LIBREF_BASE_NEAREST_H

enum { VN_NEAREST_MAX = 256 }; /* longer words have no neighbours */

typedef struct vn_nearest {
	const char *word;
	int         distance; /* of the best; more than are allowed: none */
	char        best[VN_NEAREST_MAX];
	char        hint[VN_NEAREST_MAX + 32];
} vn_nearest;

/* Letters to leave out, add, replace or exchange with their neighbour to make b of a. */
int         vn_nearest_distance(const char *a, const char *b);

void        vn_nearest_start(vn_nearest *n, const char *word);
/* Of equally near ones the first stays. */
void        vn_nearest_try(vn_nearest *n, const char *candidate);
/* "a|b|c" */
void        vn_nearest_try_words(vn_nearest *n, const char *words);
/* What is meant is known otherwise. */
void        vn_nearest_settle(vn_nearest *n, const char *candidate);
/* The best; NULL: nothing is near. */
const char *vn_nearest_found(const vn_nearest *n);
/* " (did you mean 'compare'?)", or "". */
const char *vn_nearest_hint(vn_nearest *n);

#endif
