/* sequence.h: puts checkpoints into execution order when not all of them state their place.
 *
 * The attribute `order` (specs/checkpoint.md) is optional, and sorting by name fails: layer10 would
 * come before layer2, attn_context before q_proj. So names are understood: layers sort by number,
 * points by the table in libref/plan/point.c, which has them in the order in which a layer
 * computes.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>

typedef struct vn_sequence_entry {
	/* borrowed: "layer3.q_rope", and its point as stated in the file, or "" */
	const char *name, *point;
	int         step, layer; /* layer: as stated in the file; -1 */
	int         said;        /* its stated place among those of its step; -1: not stated */
	bool        second;      /* it is a second name of a tensor */
} vn_sequence_entry;

/* Sorts: order (n) are the indices of x by step, then by stated place. An entry without a place
 * comes after the last of those that precede it by name. If no place is stated, names alone decide:
 * a checkpoint outside layers comes before or after the layers, as the table of points says;
 * foreign names come last, and numbers in them are compared as numbers. */
vn_status vn_sequence(const vn_sequence_entry *x, int n, int *order, vn_error *err);
