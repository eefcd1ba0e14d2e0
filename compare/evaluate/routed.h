/* routed.h: the reference with the experts that a candidate chose: what a candidate's error is
 * without its arithmetic.
 *
 * A run of the candidate hands over the ids of its experts and their weights, of every token and
 * layer; a run of the reference takes them in place of its own, with the order of the slots.
 *
 * Memory   two numbers for each slot of a token and layer, and up to as much again unused.
 */
#pragma once

#include "capture/run/engine.h"

/* What one node chose. */
typedef struct vn_routed_value {
	int      value, node;
	int64_t  slots; /* numbers of a token */
	vn_dtype dtype;
	char    *data;
	size_t   have, room; /* elements; bytes */
} vn_routed_value;

typedef struct vn_routed {
	vn_routed_value *of;      /* (n), in the order of the nodes */
	int              n, open; /* open: the one that is handed over; -1: none */
	int              n_nodes; /* of the plan */
} vn_routed;

/* Lists the values of a plan that choose experts, and marks them in want. r: zeroed; n stays 0 if
 * no node chooses any. */
void vn_routed_init(vn_routed *r, const vn_plan *plan, bool *want);
void vn_routed_finish(vn_routed *r);

/* For the sink of a run of the candidate. begin: returns false if the value is none of these; take:
 * until end, its next elements. */
bool vn_routed_begin(vn_routed *r, int value, vn_dtype dtype);
void vn_routed_take(vn_routed *r, const void *data, size_t elements);

/* As the engine's forward, with these experts. e: the reference in float32. */
vn_status vn_routed_forward(vn_routed *r, const vn_engine *e, const int32_t *ids, int64_t tokens, const vn_taps *taps,
                            vn_error *err);
