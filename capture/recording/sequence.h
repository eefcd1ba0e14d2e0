/* sequence.h: checkpoints in execution order, where not all of them say their place in it.
 *
 * A stranger's recording need not (specs/checkpoint.md, `order`), and the order of the alphabet puts layer10 before layer2
 * and the context of an attention before its queries. What a name means tells: layers by their number, points as the
 * table of points (libref/plan/point.c) has them, which is in the order in which a layer computes.
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
