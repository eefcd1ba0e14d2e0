/* states.h: the memory of what nodes keep between calls (vn_state), on the CPU.
 *
 * Numbers are as wide as the policy computes. A state that grows has one piece
 * of memory, whose room doubles up to the context; rows behind those of kept
 * calls do not count. One of fixed size has two: as the kept calls left it, and
 * as the call at hand makes it; keeping that call exchanges them.
 */
#ifndef VN_LIBREF_EXEC_STATES_H
#define VN_LIBREF_EXEC_STATES_H

#include "libref/plan/plan.h"

typedef struct vn_kept {
	char   *now, *next; /* next: of fixed size alone */
	int64_t room;       /* rows there is memory for */
	int64_t upto;       /* tokens that it has seen, all of them from the first on */
	bool    made;       /* of fixed size: next is that of the call at hand */
} vn_kept;

typedef struct vn_states {
	const vn_plan *plan;
	size_t         size;   /* bytes of a number */
	int64_t        past, tokens; /* of the call at hand */
	vn_kept       *kept;   /* (n_states) */
} vn_states;

vn_status vn_states_create(vn_states *s, const vn_plan *plan, size_t size, vn_error *err);
void      vn_states_destroy(vn_states *s); /* safe on a zeroed one */

/* A call of so many tokens behind `past`; at 0 everything is as at the start. A
 * failure leaves what kept calls left. */
vn_status vn_states_begin(vn_states *s, int64_t past, int64_t tokens, vn_error *err);
/* keep: what the call made is what the next one finds. */
void      vn_states_end(vn_states *s, bool keep);

/* The rows of the call (tokens, row) join a state that grows. */
void      vn_states_append(vn_states *s, int state, const void *rows);
/* Whether all is there that its node reads. */
bool      vn_states_ready(const vn_states *s, int state);
/* What its node is given (vn_args.state): of a fixed size, a copy to make anew. */
void     *vn_states_open(vn_states *s, int state);
/* Its node has run, or somebody wrote what open gave. */
void      vn_states_made(vn_states *s, int state);

/* The state as it is now, and how many numbers; NULL when it is not known. */
const void *vn_states_see(const vn_states *s, int state, int64_t *n);

#endif
