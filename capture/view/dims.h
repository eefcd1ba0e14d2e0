/* dims.h: dims strings with groups, and how one tensor's numbers stand in another's.
 *
 * "batch token (head dim)" is three axes, the last of them heads of dim numbers each.
 * A word may be a number, which is its length: "token head (freq 2)". From two dims
 * strings over the same words follow the boxes (derive.h) that make one tensor into
 * the other: axes regrouped, permuted, dropped where they are one long.
 */
#ifndef VN_CAPTURE_DIMS_H
#define VN_CAPTURE_DIMS_H

#include "capture/recording/derive.h"

enum { VN_MOST_ATOMS = 12 };

typedef struct vn_atom {
	char    word[24];
	int64_t size;   /* -1: not known */
	int64_t stride; /* elements of the tensor from one to the next */
	int     axis;   /* which axis of the tensor it is in */
} vn_atom;

typedef struct vn_dims {
	int     rank, n;
	vn_atom atom[VN_MOST_ATOMS]; /* outermost first */
} vn_dims;

/* false: *why in half a line. Sizes are -1 but of numbers. */
bool vn_dims_parse(const char *text, vn_dims *d, const char **why);
int  vn_dims_find(const vn_dims *d, const char *word); /* -1: none */

/* How long an axis of that name is; -1: not known. */
typedef int64_t vn_dims_size(void *context, const char *word);
/* Sizes and strides of a tensor of that shape: an axis of one word is as long as it is, in a
 * group all but one must be known. false where it does not come out. A leading word of an axis
 * that the shape does not have (a batch that was dropped) is taken as one long. */
bool vn_dims_fit(vn_dims *d, const vn_shape *shape, vn_dims_size *size, void *context);

/* The boxes that make `to` of `from`, which is fitted. to: sizes are set from from's words; words of
 * from that to lacks must be one long. shape: of the result. NULL where a word is missing or
 * there are too many boxes; else *n boxes, the caller's to free, of source (base, entry). */
vn_piece *vn_dims_pieces(const vn_dims *from, vn_dims *to, int base, int entry, vn_shape *shape, int *n);

#endif
