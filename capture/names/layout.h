/* layout.h: the ways in which a tensor of some shape can hold a checkpoint: its axes in another
 * order, several axes in one, axes of length one besides.
 */
#pragma once

#include "capture/view/dims.h"

enum { VN_LAYOUTS = 6, VN_LAYOUT_DIMS = 64 };

typedef struct vn_axis_length {
	char    word[24];
	int64_t size;
} vn_axis_length;

/* Reads the words of a checkpoint's axes, with the lengths of this shape. Returns how many; 0: they
 * do not fit it. */
int vn_axis_lengths(const char *axes, const vn_shape *shape, vn_axis_length axis[VN_MAX_RANK]);

/* Lists the dims strings (dims.h) of tensors of this shape that hold these axes (n), the
 * checkpoint's own order first, at most VN_LAYOUTS. Returns how many. */
int vn_layouts(const vn_shape *shape, const vn_axis_length *axis, int n, char list[VN_LAYOUTS][VN_LAYOUT_DIMS]);
