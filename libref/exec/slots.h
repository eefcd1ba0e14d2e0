/* slots.h: assigns memory to the values of a call, so that it is reused.
 *
 * A value needs its memory from the node that makes it to the last node that reads it. Offsets are
 * per token: value v of a call of T tokens starts at element offset[v] * T and has T * row
 * elements.
 */
#ifndef VN_LIBREF_EXEC_SLOTS_H
#define VN_LIBREF_EXEC_SLOTS_H

#include "libref/plan/plan.h"

typedef struct vn_slots {
	int64_t *offset; /* (n_values); -1: no memory here (aliases, states, streamed values) */
	int     *slot;   /* (n_values): values with one number share memory; -1 as above */
	int      n;      /* slots */
	int64_t  total;  /* elements per token of all slots */
} vn_slots;

bool vn_slots_assign(vn_slots *s, const vn_plan *p); /* false: no memory */
void vn_slots_finish(vn_slots *s);

#endif
