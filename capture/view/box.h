/* box.h: what a derived tensor keeps of one tensor of a source, axis by axis.
 *
 * A row of a batch, a cache out of its pages, one rank's share: each takes some axes of
 * a tensor as they are, some in part, one not at all. The axes that are begun with
 * vn_box_axis are those of the result, in that order; derive.h takes the piece.
 */
#ifndef VN_CAPTURE_BOX_H
#define VN_CAPTURE_BOX_H

#include "capture/recording/derive.h"

typedef struct vn_box {
	vn_piece piece;               /* to 0; from: the caller moves it */
	vn_entry made;                /* the result so far: rank, sizes and words; its axes lie in here */
	char     axes[VN_AXES_MAX];
	int64_t  stride[VN_MAX_RANK]; /* of the source's axes, in elements */
	size_t   used;                /* of axes */
} vn_box;

/* No axes yet; the rest of made is the entry's. */
void vn_box_begin(vn_box *b, int base, int entry, const vn_entry *e);
/* The next axis: length numbers along the source's, under that word. Returns which it is. */
int  vn_box_axis(vn_box *b, int source_axis, int64_t length, const char *word);
/* All axes as they are. */
vn_piece vn_box_whole(int base, int entry, const vn_entry *e);

#endif
