/* box.c: see box.h. */
#include "capture/view/box.h"

#include <stdio.h>

void vn_box_begin(vn_box *b, int base, int entry, const vn_entry *e)
{
	int64_t step = 1;
	*b = (vn_box) { .piece = { .base = base, .entry = entry }, .made = *e };
	b->made.shape = (vn_shape) { .rank = 0 };
	b->made.axes = b->axes;
	for (int k = e->shape.rank - 1; k >= 0; k--) {
		b->stride[k] = step;
		step *= e->shape.dim[k];
	}
}

int vn_box_axis(vn_box *b, int source_axis, int64_t length, const char *word)
{
	const int at = b->made.shape.rank++;
	b->piece.size[at] = b->made.shape.dim[at] = length;
	b->piece.stride[at] = b->stride[source_axis];
	if (b->used < sizeof b->axes)
		b->used += (size_t)snprintf(b->axes + b->used, sizeof b->axes - b->used, "%s%s", at ? " " : "", word);
	return at;
}

vn_piece vn_box_whole(int base, int entry, const vn_entry *e)
{
	vn_box b;
	vn_box_begin(&b, base, entry, e);
	for (int k = 0; k < e->shape.rank; k++)
		vn_box_axis(&b, k, e->shape.dim[k], "");
	return b.piece;
}
