/* states.h: the memory of what nodes keep between calls (vn_state), on the CPU.
 *
 * Numbers have the width in which the policy computes. A growing state has one buffer, which
 * doubles up to the context; rows after those of kept calls are unused. A state of fixed size has
 * two: as kept calls left it, and as the current call makes it. Keeping the call exchanges them.
 */
#pragma once

#include "libref/plan/plan.h"

typedef struct vn_kept {
	char   *now, *next; /* next: only for fixed size */
	int64_t room;       /* rows allocated */
	int64_t upto;       /* number of tokens that it has processed since position 0 */
	bool    made;       /* fixed size: `next` is that of the current call */
} vn_kept;

typedef struct vn_states {
	const vn_plan *plan;
	size_t         size;         /* bytes per number */
	int64_t        past, tokens; /* of the current call */
	vn_kept       *kept;         /* (n_states) */
} vn_states;

vn_status vn_states_create(vn_states *s, const vn_plan *plan, size_t size, vn_error *err);
void      vn_states_destroy(vn_states *s); /* s may be zeroed */

/* Begins a call of `tokens` tokens after `past`; past 0 resets everything. On failure the states of
 * kept calls remain. */
vn_status vn_states_begin(vn_states *s, int64_t past, int64_t tokens, vn_error *err);
/* Ends the call. keep: the next call continues from its states. */
void      vn_states_end(vn_states *s, bool keep);

/* Appends the call's rows (tokens, row) to a growing state, and returns where they are. */
void *vn_states_append(vn_states *s, int state, const void *rows);
/* Does the state hold everything that its node reads? */
bool  vn_states_ready(const vn_states *s, int state);
/* Returns the pointer for vn_args.state; for fixed size, to a copy that the node updates. */
void *vn_states_open(vn_states *s, int state);
/* Call after its node has run, or after the memory from vn_states_open was written. */
void  vn_states_made(vn_states *s, int state);

/* Returns the current state and its number of elements; NULL: not known. */
const void *vn_states_see(const vn_states *s, int state, int64_t *n);

/* Assigns memory to the values of a call, so that it is reused.
 *
 * A value needs its memory from the node that makes it to the last node that reads it. Offsets are
 * per token: value v of a call of T tokens starts at element offset[v] * T and has T * row
 * elements.
 */

typedef struct vn_slots {
	int64_t *offset; /* (n_values); -1: no memory here (aliases, states, streamed values) */
	int     *slot;   /* (n_values): values with one number share memory; -1 as above */
	int      n;      /* slots */
	int64_t  total;  /* elements per token of all slots */
} vn_slots;

bool vn_slots_assign(vn_slots *s, const vn_plan *p); /* false: no memory */
void vn_slots_finish(vn_slots *s);
