/* dims.h: dims strings with groups, and the conversion of one tensor's layout to another's.
 *
 * "batch token (head dim)" is three axes; the last consists of heads of dim numbers each.
 * A word may be a number, which is its length: "token head (freq 2)". From two dims strings over
 * the same words follow the boxes (derive.h) that make one tensor from the other: axes regrouped,
 * permuted, dropped if they have length one.
 */
#pragma once

#include "capture/recording/derive.h"

enum { VN_MOST_ATOMS = 12 };

typedef struct vn_atom {
	char    word[24];
	int64_t size;   /* -1: not known */
	int64_t stride; /* distance of neighbours in the tensor, in elements */
	int     axis;   /* the axis of the tensor that contains it */
} vn_atom;

typedef struct vn_dims {
	int     rank, n;
	vn_atom atom[VN_MOST_ATOMS]; /* outermost first */
} vn_dims;

/* Parses a dims string. Sizes are -1 except for numbers. Returns false on failure, with half a line
 * in *why. */
bool vn_dims_parse(const char *text, vn_dims *d, const char **why);
int  vn_dims_find(const vn_dims *d, const char *word); /* -1: none */

/* Returns the length of an axis of that name; -1: not known. */
typedef int64_t vn_dims_size(void *context, const char *word);
/* Sets sizes and strides for a tensor of that shape. An axis of one word has its length; in a
 * group, all words but one must be known. Returns false if the sizes do not fit. A leading word
 * that the shape lacks (a batch axis that was dropped) gets length one. */
bool            vn_dims_fit(vn_dims *d, const vn_shape *shape, vn_dims_size *size, void *context);

/* Computes the boxes that make `to` from `from`, which must be fitted. Sets the sizes of `to` from
 * the same words of `from`; words that `to` lacks must have length one. *shape: of the result.
 * Returns *n boxes of source (base, entry), which the caller frees; NULL: a word is missing, or
 * there are too many boxes. */
vn_piece *vn_dims_pieces(const vn_dims *from, vn_dims *to, int base, int entry, vn_shape *shape, int *n);
