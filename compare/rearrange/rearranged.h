/* rearranged.h: an operation's result, the candidate's numbers, and room for the result in another
 * arrangement. */
#ifndef VN_COMPARE_REARRANGED_H
#define VN_COMPARE_REARRANGED_H

#include "compare/hypothesis/trial.h"

typedef struct vn_rearranged {
	vn_explain_trial *t;
	int64_t           n;
	double           *own, *fine, *cand; /* the operation's result; the same more precisely; the candidate */
	double           *a, *b;             /* room: own and fine, arranged */
	const vn_tensor  *like;
} vn_rearranged;

/* Returns the numbers in double, which the caller frees. NULL: no memory. */
/* Scores the hypothesis that the candidate recorded r->a, and adds it to the answers if it fits.
 * Rounds r->a to the candidate's format; r->b is the same more precisely. */
vn_status vn_rearranged_judge(vn_rearranged *r, vn_hypothesis *h, vn_error *err);
/* Same, if r->a is the operation's result in another order (vn_try_arranged). */
vn_status vn_rearranged_judge_order(vn_rearranged *r, vn_hypothesis *h, vn_error *err);

/* Is value v computed from `of`, or does it show the same memory, as a state does? */
bool vn_is_made_of(const vn_plan *p, int v, int of);
/* Is the candidate's tensor `entry` itself the result of a wrong operation? If so, equal numbers do
 * not show that the wrong buffer was recorded: one mistake may make both tensors, such as uniform
 * probabilities in every layer. */
bool vn_is_wrong_itself(const vn_comparison *c, int entry);
/* Is any number finite? Two tensors that are NaN everywhere may come from one overflow, so they do
 * not show a copy. */
bool vn_any_finite(const double *x, int64_t n);

#endif
