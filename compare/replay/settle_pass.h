/* settle_pass.h: a step whose choices of experts are searched (settle.h): which results are behind
 * each choice, and the passes of B that measure how far the candidate is from them.
 */
#pragma once

#include "compare/replay/choice_ways.h"

/* A choice that was not recorded, and that results of its step depend on. */
typedef struct vn_settled_choice {
	vn_choice_ways ways;
	vn_dtype       recorded; /* vn_choice_find_ways */
	bool          *behind;   /* (ends) */
	int            first;    /* the first end behind it */
	unsigned char *by;       /* (tokens): the way that is taken */
	double        *ids;      /* (tokens, k): as B chose in the last pass */
	bool          *loose;    /* (tokens) */
} vn_settled_choice;

struct vn_settled {
	vn_settled_choice *of;
	int                n;
	/* The measured results whose rows are tokens. Errors are squared and relative to the row; -1:
	 * of a token that was not recorded. */
	int               *end; /* (values): which of them; -1 */
	int                ends;
	int64_t            tokens;
	double            *error, *floor, *other; /* (ends, tokens): of B; the mean of the draws; of B in a trial */
	double            *least;                 /* (ends): the least floor of a row */
};

/* Fills s with what a step (r->at) chooses and does not record. s is empty. */
void      vn_settled_list(const vn_replay *r, vn_settled *s);
void      vn_settled_drop(vn_settled *s);
/* Runs the step with the ways that are taken, and fills error (ends, tokens). floors: also measures
 * those of rows, and what rounding may change. ids: of the whole recording. */
vn_status vn_settled_pass(vn_replay *r, vn_settled *s, double *error, bool floors, const int32_t *ids, vn_error *err);

/* Does the choice have this way for a token? */
static inline bool vn_settled_has(const vn_settled_choice *c, int way, int64_t t)
{
	return c->ways.is[way * c->ways.rows + t];
}
