/* explain_inside.h: what the files of an explanation share. */
#ifndef VN_COMPARE_EXPLAIN_INSIDE_H
#define VN_COMPARE_EXPLAIN_INSIDE_H

#include "compare/explain.h"
#include "compare/local.h"
#include "compare/probe.h"

/* Did the run go on with the numbers that were recorded? By what reads them. */
typedef enum vn_went { VN_WENT_UNKNOWN, VN_WENT_ON, VN_NOT_WENT_ON } vn_went;

/* Tries to explain one checkpoint: the probe stands at it. */
typedef struct vn_trial {
	vn_comparison  *c;
	vn_probe       *probe;
	vn_explanation *x;
	int64_t         elements;
	vn_went         went;
} vn_trial;

/* explain_try.c. What is left of the operation as it should be, into t->x->sound. own, fine: what it gives. */
vn_status vn_try_sound(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err);
/* h->id, words, node and capture are filled in: what the plan and weights leave, and into x where that is little. Neither touched nor
 * of the shape: nothing. */
vn_status vn_try(vn_trial *t, const vn_plan *plan, const vn_tensor *weights, vn_hypothesis *h, vn_error *err);
/* The same of numbers that were made otherwise. own, fine: of the candidate's shape. */
vn_status vn_try_numbers(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_hypothesis *h, vn_error *err);
/* Does it explain the checkpoint? */
bool      vn_trial_fits(const vn_trial *t, const vn_hypothesis *h);
/* Does any that was tried? */
bool      vn_trial_answered(const vn_trial *t);
/* Which of t->x->by explain it, and which are aliases. */
void      vn_conclude(vn_trial *t);

/* explain_catalogue.c. Every fault of it; only: its answers and the next best alone; NULL: all. */
vn_status vn_try_catalogue(vn_trial *t, const vn_explanation *only, vn_error *err);
vn_went   vn_how_it_went(const vn_trial *t);

/* explain.c. t->x->point explained, into t->x, which is empty but for it. like: by its answers and the next best alone; NULL: by everything. */
vn_status vn_explain_point(vn_trial *t, const vn_explanation *like, vn_error *err);
/* The same where none of the catalogue does, and t->x has been filled in: what is fitted, then the error in words. */
vn_status vn_explain_further(vn_trial *t, vn_error *err);
/* x in the three digits that a person writes. */
double    vn_three_digits(double x);

/* The same with a node of the model's plan changed. */
vn_status vn_try_node(vn_trial *t, int node, const vn_node *as, vn_hypothesis *h, vn_error *err);
__attribute__((format(printf, 2, 3)))
void      vn_hypothesis_say(vn_hypothesis *h, const char *format, ...);

/* explain_fit.c: parameters, then arrangements. own, fine: what the operation as it should be gives. */
vn_status vn_try_fits(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err);
/* explain_rope.c */
vn_status vn_fit_rope(vn_trial *t, int node, vn_error *err);
/* explain_arrange.c */
vn_status vn_try_arrangements(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err);

/* explain_tiles.c: own, fine as above: rows that are another checkpoint's, or 0. */
vn_status vn_try_tiles(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err);

/* explain_looks.c: the error in words, into x->looks. */
vn_status vn_say_looks(vn_trial *t, const vn_tensor *own, vn_error *err);

/* explain_steps.c: what each step says of a point held against its other steps. */
vn_status vn_explain_steps(vn_trial *t, vn_explanations *x, vn_error *err);
/* explain_slots.c: all those of one point of attention, in n steps, one of which at least has no answer: slots of a cache that hold nothing. */
vn_status vn_explain_slots(vn_trial *t, vn_explanation **x, int n, vn_error *err);

/* explain_settle.c: of all explanations, once they are there: the order of aliases, and separate. */
void vn_explain_settle(const vn_comparison *c, vn_explanations *x);

#endif
