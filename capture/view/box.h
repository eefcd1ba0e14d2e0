/* box.h: describes, axis by axis, which part of a source tensor a derived tensor holds.
 *
 * A batch row, a cache without its pages and one rank's share each keep some axes of the source
 * whole, keep some in part, and drop others. Call vn_box_begin, then vn_box_axis for each axis of
 * the result, in the result's order; `piece` is then what derive.h needs.
 */
#pragma once

#include "capture/recording/derive.h"

typedef struct vn_box {
	vn_piece piece; /* `to` is 0; the caller sets `from` */
	/* the result so far: rank, sizes and texts; its axes are in the next field */
	vn_entry made;
	char     axes[VN_AXES_MAX];
	int64_t  stride[VN_MAX_RANK]; /* of the source's axes, in elements */
	size_t   used;                /* bytes used in axes */
} vn_box;

/* Starts a box without axes; the rest of `made` is copied from e. */
void     vn_box_begin(vn_box *b, int base, int entry, const vn_entry *e);
/* Adds an axis with this name, along the source's: `length` numbers. Returns its index. */
int      vn_box_axis(vn_box *b, int source_axis, int64_t length, const char *word);
/* Returns the piece that is the whole entry. */
vn_piece vn_box_whole(int base, int entry, const vn_entry *e);
