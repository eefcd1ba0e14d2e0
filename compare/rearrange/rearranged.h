/* rearranged.h: an operation's result, the candidate's numbers, and room for the result in another
 * arrangement.
 *
 * Owner    vn_rearranged_open allocates the five arrays; t and like are borrowed.
 * Threads  one thread at a time per vn_rearranged.
 */
#pragma once

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

/* rearrange_number.c: tries one number that changes all of an operation's result: a factor, an
 * offset, a limit, a cap, or one number everywhere. */

/* Names of common overall factors, in terms of the model's sizes. */
/* clang-format off */
typedef enum vn_factor_name {
	VN_NO_NAME, VN_PLAIN_FACTOR, VN_HEAD_WIDTH, VN_OVER_HEAD_WIDTH, VN_ROOT_HEAD_WIDTH, VN_OVER_ROOT_HEAD_WIDTH,
		VN_MODEL_WIDTH, VN_OVER_MODEL_WIDTH,
	VN_ROOT_MODEL_WIDTH, VN_OVER_ROOT_MODEL_WIDTH, VN_ROOT_MODEL_OVER_HEAD, VN_ROOT_HEAD_OVER_MODEL, VN_QUERY_HEADS,
		VN_OVER_QUERY_HEADS,
	VN_127_OVER_128, VN_128_OVER_127, VN_OVER_LAYERS_AND_ONE, VN_ROOT_2, VN_OVER_ROOT_2, VN_N_FACTOR_NAMES
} vn_factor_name;
/* clang-format on */

/* Tries one number everywhere. */
void vn_rearrange_one_value(vn_rearranged *r);
/* Tries a factor, an offset, a limit and a cap. */
void vn_rearrange_numbers(vn_rearranged *r);

/* rearrange.c: finds along which axis a result without a plan is in another order: rows a
 * token late, heads exchanged, columns reversed, interleaved or repeated. */

/* What order the whole axis is in. Of the last two, the trial's list has the width of a group. */
typedef enum vn_axis_order { VN_AXIS_RUNS, VN_AXIS_INTERLEAVED, VN_AXIS_HALVED } vn_axis_order;

/* leading.c: finds a wrong leading dimension: two rows of an operand are another distance apart in
 * memory than a row is wide, as in a call of BLAS with a wrong lda, ldb or ldc, or for rows of a
 * wider buffer that are recorded as if they were packed.
 */

/* Which operand has it: number `factor` of a trial's result. `number` is the distance, 0: columns
 * follow each other, not rows; list: the right distance. */
typedef enum vn_leading_of { VN_LEADING_INPUT, VN_LEADING_MATRIX, VN_LEADING_RESULT } vn_leading_of;

/* Tries the widths of the model near the operation, for a call of several tokens. */
void vn_rearrange_leading(vn_rearranged *r);
