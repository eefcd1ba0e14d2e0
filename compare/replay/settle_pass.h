/* settle_pass.h: a step whose choices of experts are searched (settle.h): which results are behind
 * each choice, and the passes of B that measure how far the candidate is from them.
 */
#pragma once

#include "compare/replay/choice_ways.h"
#include "compare/replay/draws.h"

/* A choice that was not recorded, and that results of its step depend on. */
typedef struct vn_settled_choice {
	vn_choice_ways ways;
	bool          *behind; /* (ends) */
	int            first;  /* the first end behind it */
	int            each;   /* value: what each chosen expert makes; -1: not recorded */
	unsigned char *by;     /* (tokens): the way that is taken */
	int           *order;  /* (VN_CHOICE_WAYS, tokens, k): which id each slot has; NULL: its own */
	double        *ids;    /* (tokens, k): as B chose in the last pass */
	bool          *loose;  /* (tokens) */
	bool           free;   /* every draw chooses for itself, and B does */
} vn_settled_choice;

/* Of all steps so far, the rows of a value. */
typedef struct vn_settled_rows {
	int64_t seen, wrong;
	int64_t apart, drawn[VN_DRAWS_MOST]; /* that stand apart, of the candidate and of each draw */
} vn_settled_rows;

struct vn_settled {
	vn_settled_choice *of;
	int                n;
	/* The measured results whose rows are tokens. Errors are squared and relative to the row; -1:
	 * of a token that was not recorded. */
	int               *end; /* (values): which of them; -1 */
	int                ends;
	vn_settled_rows   *rows;   /* (values): kept from step to step */
	vn_settled_rows  **of_end; /* (ends) */
	int64_t            tokens;
	/* (ends, tokens): of B; the mean of the draws, at least `own`; of A; of B in a trial */
	double            *error, *floor, *own, *other;
	double            *least;     /* (ends): the least floor of a row */
	double            *drawn;     /* (VN_DRAWS_MOST, ends, tokens): of vn_settled_free */
	bool               reordered; /* an order changed in the last pass */
};

/* Fills s with what a step (r->at) chooses and does not record. s is empty. */
vn_status vn_settled_list(const vn_replay *r, vn_settled *s, vn_error *err);
void      vn_settled_drop(vn_settled *s);
/* Runs the step with the ways that are taken, and fills error (ends, tokens). floors: also measures
 * those of rows, and what rounding may change. ids: of the whole recording. */
vn_status vn_settled_pass(vn_replay *r, vn_settled *s, double *error, bool floors, const int32_t *ids, vn_error *err);

/* Runs it in all draws, where choices are free, and fills error and s->drawn. */
vn_status vn_settled_free(vn_replay *r, vn_settled *s, double *error, const int32_t *ids, vn_error *err);

/* Fills ids (k) with a way of a token, in the candidate's order. */
void               vn_settled_ids(const vn_settled_choice *c, int way, int64_t t, double *ids);
/* Does the choice have this way for a token? */
static inline bool vn_settled_has(const vn_settled_choice *c, int way, int64_t t)
{
	return c->ways.is[way * c->ways.rows + t];
}
