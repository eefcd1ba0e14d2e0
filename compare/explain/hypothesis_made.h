/* hypothesis_made.h: the result of applying a hypothesis to a checkpoint. */
#ifndef VN_COMPARE_HYPOTHESIS_MADE_H
#define VN_COMPARE_HYPOTHESIS_MADE_H

#include "compare/explain/trial.h"
#include "libref/plan/fault.h"

/* A plan and weights to run, or numbers, or neither (the hypothesis changes nothing here). */
typedef struct vn_made {
	const vn_plan   *plan;
	const vn_tensor *weights;
	vn_tensor        own, fine; /* the numbers, in the candidate's precision and more precisely */
	vn_plan         *copy;      /* private to vn_made_finish, as are the following */
	vn_faulty       *faulty;
	vn_tensor       *table;
	void            *rows;
} vn_made;

void vn_made_finish(vn_made *made);

/* Gives *made a table of weights of its own (made->table), a copy of made->weights, for plan p. */
vn_status vn_made_copy_table(vn_made *made, const vn_plan *p, vn_error *err);

/* Allocates own and fine in double, in the shape of the checkpoint. */
vn_status vn_made_room(const vn_explain_trial *t, vn_made *made, vn_error *err);
/* Fills own with fine, as the engine stores it. */
void      vn_made_round(const vn_explain_trial *t, vn_made *made);

#endif
