/* tables.h: caches the cosines and sines of RoPE's angles between calls. Inside libgpu only.
 *
 * A row belongs to a position, so later calls of a run, and runs that start again at position 0,
 * reuse rows: computing 65,000 cosines takes longer than computing a token.
 */
#pragma once

#include "libref/plan/plan.h"

typedef struct vn_rope_table {
	const vn_rope *rope;  /* whose angles; set by the owner, like lists */
	const vn_list *lists; /* of the plan */
	float         *freq;  /* (R/2): what the rows were computed with */
	float          factor;
	float         *row; /* (room, R/2, 2) */
	int64_t        upto, room;
} vn_rope_table;

/* Fills table (tokens, R/2, 2) for the positions after `past`. The angle is the float32 product, as
 * models compute it; its cosine and sine are taken in double. */
vn_status vn_rope_table_fill(vn_rope_table *kept, float *table, int64_t past, int64_t tokens, vn_error *err);
void      vn_rope_table_free(vn_rope_table *t); /* t may be zeroed */
