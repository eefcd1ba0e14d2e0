/* tables.h: cosines and sines of the angles of rope, kept from call to call.
 *
 * Inside libgpu only. A row belongs to a position, so the calls of a decode, and those that begin anew, share them;
 * 65000 cosines take longer than a token. Where the angles depend on more than the position, a table is made anew.
 */
#ifndef VN_LIBGPU_TABLES_H
#define VN_LIBGPU_TABLES_H

#include "libref/plan/plan.h"

typedef struct vn_table {
	float  *freq;   /* (R/2): what the rows were made with, and */
	float   factor;
	float  *row;    /* (room, R/2, 2) */
	int64_t upto, room;
} vn_table;

/* (tokens, R/2, 2), of the positions behind `past`. The angle is the float32 product, as models compute it; its cosine is
 * taken in double. */
vn_status vn_table_fill(vn_table *kept, const vn_rope *r, const vn_list *lists, float *table, int64_t past, int64_t tokens,
                        vn_error *err);
void      vn_table_free(vn_table *t); /* safe on a zeroed one */

#endif
