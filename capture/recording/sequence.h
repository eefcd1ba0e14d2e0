/* sequence.h: puts checkpoints into execution order when not all of them state their place.
 *
 * The attribute `order` (specs/checkpoint.md) is optional, and sorting by name fails: layer10 would
 * come before layer2, attn_context before q_proj. So names are understood: layers sort by number,
 * points by the table in libref/plan/point.c, which has them in the order in which a layer computes.
 */
#ifndef VN_CAPTURE_SEQUENCE_H
#define VN_CAPTURE_SEQUENCE_H

#include "libref/base/error.h"

#include <stdbool.h>

typedef struct vn_place_of {
	const char *name, *point; /* borrowed: "layer3.q_rope", and what the file says of it, "" where that is nothing */
	int  step, layer;         /* layer: as the file says; -1 */
	int  said;                /* its place among those of its step that have one; -1: it is not known */
	bool second;              /* a second name of a tensor */
} vn_place_of;

/* order (n): the indices of x by step, then by what is said; what is not is behind the last of those that come before it by
 * its name. Where nothing is said names alone decide: what is outside the layers in front or behind as its point is, other
 * people's names last, numbers in them counted as numbers. */
vn_status vn_sequence(const vn_place_of *x, int n, int *order, vn_error *err);

#endif
