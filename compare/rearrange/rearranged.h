/* rearranged.h: an operation's result, the candidate's numbers, and room for the result in another
 * arrangement.
 *
 * Owner    vn_rearranged_open allocates the five arrays; t and like are borrowed.
 * Threads  one thread at a time per vn_rearranged.
 */
#ifndef VN_COMPARE_REARRANGED_H
#define VN_COMPARE_REARRANGED_H

#include "compare/trial/case.h"

typedef struct vn_rearranged {
	vn_case         *t;
	int64_t          n;     /* numbers in each of the arrays */
	double          *own;   /* the result of the unmodified operation, in the candidate's precision */
	double          *fine;  /* the same more precisely */
	double          *cand;  /* what the candidate recorded */
	double          *a, *b; /* room for own and fine as a trial changes them */
	const vn_tensor *like;  /* the candidate's tensor, t->site->cand: its shape is that of all arrays */
} vn_rearranged;

/* Fills *r for the checkpoint of t; a and b have its numbers at first. Call vn_rearranged_close
 * afterwards, also after a failure. */
void vn_rearranged_open(vn_rearranged *r, vn_case *t);
void vn_rearranged_close(vn_rearranged *r);

/* Scores the trial that the candidate recorded r->a (r->b: the same more precisely), and adds
 * it to r->t->x. Rounds r->a to the candidate's storage format; fills h->node and
 * h->applied.kind. allowed: as in vn_try_numbers. */
void vn_rearranged_judge(vn_rearranged *r, const vn_replayed *allowed, vn_trial *h);

/* Is value v computed from `of`, or does it show the same memory, as a state does? */
bool vn_rearrange_is_made_of(const vn_plan *p, int v, int of);
/* Could the checkpoint have been recorded with the numbers of the candidate's tensor `entry`: is it
 * another tensor of its step, with as many numbers in its format? */
bool vn_rearrange_could_hold(const vn_rearranged *r, int entry);
/* Is the candidate's tensor `entry` itself the result of a wrong operation? If so, equal numbers do
 * not show that the wrong buffer was recorded: one mistake may make both tensors, such as uniform
 * probabilities in every layer. */
bool vn_rearrange_is_wrong_itself(const vn_result *r, int entry);
/* Is any number finite? Two tensors that are NaN everywhere may come from one overflow, so they do
 * not show a copy. */
bool vn_rearrange_any_finite(const double *x, int64_t n);

#endif
