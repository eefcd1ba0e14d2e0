/* rearranged.h: an operation's result, and a candidate that may be an arrangement of it. */
#ifndef VN_COMPARE_REARRANGED_H
#define VN_COMPARE_REARRANGED_H

#include "compare/hypothesis/trial.h"

typedef struct vn_rearranged {
	vn_explain_trial *t;
	int64_t           n;
	double           *own, *fine, *cand; /* the operation's result, the same more precisely, the candidate */
	double           *a, *b;             /* room: the first two arranged */
	const vn_tensor  *like;
} vn_rearranged;

/* Returns the numbers in double, which the caller frees. NULL: no memory. */
double   *vn_doubles_of(const vn_tensor *t);
/* Judges r->a and r->b as the stored result: r->a is rounded to the candidate's format, its more
 * precise twin r->b is not. */
vn_status vn_rearranged_judge(vn_rearranged *r, vn_hypothesis *h, vn_error *err);
/* The same, of the operation's own numbers in another order. */
vn_status vn_rearranged_judge_order(vn_rearranged *r, vn_hypothesis *h, vn_error *err);

/* Is value v computed from `of`, or does it show the same memory, as a state does? */
bool vn_is_made_of(const vn_plan *p, int v, int of);
/* Is the result of the operation of this tensor of the candidate wrong, too? Then its numbers are
 * no sign that it was recorded elsewhere: one mistake may make both, as uniform probabilities in
 * every layer. */
bool vn_is_wrong_itself(const vn_comparison *c, int entry);
/* NaN everywhere is common to any two results of one overflow, so it does not show a copy. */
bool vn_any_finite(const double *x, int64_t n);

#endif
