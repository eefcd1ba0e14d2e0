/* explain_inside.h: what the files of an explanation share. */
#ifndef VN_COMPARE_EXPLAIN_INSIDE_H
#define VN_COMPARE_EXPLAIN_INSIDE_H

#include "compare/explain/explain.h"
#include "compare/replay/local.h"
#include "compare/replay/probe.h"

/* Did the run go on with the numbers that were recorded? By what reads them. */
typedef enum vn_went { VN_WENT_UNKNOWN, VN_WENT_ON, VN_NOT_WENT_ON } vn_went;

/* Heads of the checkpoint that a hypothesis is made in; the others are as they should be. explain_part.c */
typedef struct vn_part {
	bool             in[VN_PART_HEADS];
	int              heads;
	int64_t          outer, inner; /* elements before and behind the axis of heads */
	const vn_tensor *own, *fine;
	char             words[64];
} vn_part;

/* Tries to explain one checkpoint: the probe stands at it. */
typedef struct vn_trial {
	vn_comparison  *c;
	vn_probe       *probe;
	vn_explanation *x;
	int64_t         elements;
	vn_went         went;
	bool            brief; /* one of many: what takes long is not tried */
	const vn_part  *part;  /* NULL: hypotheses are made in all heads */
	bool            whole; /* what is made in some heads alone is not tried */
	int             pairs_in_vain; /* origins that no two mistakes explain */
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
/* The same where none of the catalogue does, and t->x has been filled in: what is fitted, then the error in words. fitted: what is
 * fitted was refuted, and would be found again. */
vn_status vn_explain_further(vn_trial *t, bool fitted, vn_error *err);
/* x in the three digits that a person writes. */
double    vn_three_digits(double x);

/* h->used and local alone, and nothing into x. */
vn_status vn_weigh_numbers(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_hypothesis *h, vn_error *err);
vn_status vn_weigh(vn_trial *t, const vn_plan *plan, const vn_tensor *weights, vn_hypothesis *h, vn_error *err);
/* Into x, in its place among those that leave more and less. */
void      vn_keep(vn_explanation *x, const vn_hypothesis *h);

/* What is fitted, and made again in other steps by what it was made of: h->made. */
bool      vn_is_made(const vn_hypothesis *h);

/* explain_set.c: hypotheses that are made by constants. A constant of h->made; its value. */
void      vn_made_put(vn_hypothesis *h, const char *name, double value);
/* The plan with these constants. VN_ERR_USAGE: one is not of those that it may be. */
vn_status vn_made_plan(const vn_trial *t, const vn_hypothesis *h, vn_plan **plan, vn_error *err);
/* vn_weigh and vn_try of it. h->node, id, words and made are filled in, and h->also is. */
vn_status vn_weigh_made(vn_trial *t, vn_hypothesis *h, vn_error *err);
vn_status vn_try_made(vn_trial *t, vn_hypothesis *h, vn_error *err);
bool      vn_is_made(const vn_hypothesis *h);
/* Its last constant, that of its fault, or how far rows are moved, is that number. */
void      vn_made_number(vn_hypothesis *h, double number);
/* Its last constant is a whole number, `best` or one beside it between low and high: tried, and said by `words` with a place for the
 * number in text, "40" or, where neighbours are within the floor too, "40 to 42". */
__attribute__((format(printf, 6, 0)))
vn_status vn_try_whole(vn_trial *t, vn_hypothesis *h, int64_t best, int64_t low, int64_t high, const char *words, vn_error *err);
/* Its last constant and those beside it, from low to high, that are within the floor, as a person says them: "40 to 42". */
vn_status vn_say_whole(vn_trial *t, const vn_hypothesis *h, int64_t low, int64_t high, char text[64], vn_error *err);
/* The same of a number of the first digits that are as good as all of x. */
__attribute__((format(printf, 4, 0)))
vn_status vn_try_digits(vn_trial *t, vn_hypothesis *h, double x, const char *words, vn_error *err);
/* Where the answer is a window of the catalogue: which others are within the floor. */
vn_status vn_say_beside(vn_trial *t, vn_error *err);

/* explain_part.c. Heads alone that came out otherwise: every hypothesis in these. own, fine: what the operation as it should be gives. */
vn_status vn_try_part(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err);
/* The part of h at this checkpoint; false: there is none. */
bool      vn_part_of(const vn_trial *t, const vn_hypothesis *h, const vn_tensor *own, const vn_tensor *fine, vn_part *part);
/* Heads of z that are in no part become those of `sound`. */
void      vn_part_splice(const vn_part *part, const vn_tensor *z, const vn_tensor *sound);

/* explain_together.c: one number at several operations, or at one farther away. */
vn_status vn_fit_together(vn_trial *t, vn_error *err);
/* Where rotations that were skipped explain it, or a mask that hides a query's own key: the other that does. */
vn_status vn_try_alike(vn_trial *t, vn_error *err);
__attribute__((format(printf, 2, 3)))
void      vn_hypothesis_say(vn_hypothesis *h, const char *format, ...);

/* explain.c. h made at t->x->point, into t->x, which is empty but for it. */
vn_status vn_explain_with(vn_trial *t, const vn_hypothesis *h, vn_error *err);

/* explain_fit.c: parameters, then arrangements. own, fine: what the operation as it should be gives. */
vn_status vn_try_fits(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err);
/* explain_read.c: the operation is right, and reads what is another's: a checkpoint, keys and values, weights of a layer. */
vn_status vn_try_reads(vn_trial *t, vn_error *err);
/* h, which is of another layer's node, reads what lies as far before or behind this one's. false: there is none. */
bool      vn_reads_here(const vn_trial *t, vn_hypothesis *h, int node);

/* explain_late.c: in steps what is of the step before, and embeddings of other tokens of the sequence. */
vn_status vn_try_late(vn_trial *t, vn_error *err);
/* What h->made.late or h->made.tokens leaves, into h->used and local; NaN: it changes nothing here. */
vn_status vn_weigh_late(vn_trial *t, vn_hypothesis *h, vn_error *err);

/* Of the operations between the checkpoint and what was captured, without arrangements of the checkpoint. */
enum { VN_FIT_ALONE = 4 }; /* operations, from the checkpoint's own on, that each is tried alone in its own way */
vn_status vn_fit_nodes(vn_trial *t, vn_error *err);
/* The constant `name` of h, between low and high, that leaves least, in `steps` steps and then finer. vague: only where it is near enough
 * for a number in between to be the right one. */
typedef struct vn_range { double low, high; int steps; bool vague; } vn_range;
__attribute__((format(printf, 5, 0)))
vn_status vn_fit_constant(vn_trial *t, vn_hypothesis *h, const char *name, vn_range within, const char *words, vn_error *err);
/* h->node is an attention, and reach says which others have the same window. */
vn_status vn_fit_window(vn_trial *t, vn_hypothesis *h, vn_error *err);
/* The last constant of h, a whole number from low to high, that leaves least, into h too; *error: as nmse. */
vn_status vn_best_whole(vn_trial *t, vn_hypothesis *h, int64_t low, int64_t high, int64_t *best, double *error, vn_error *err);
/* explain_sinks.c: the same window, beside which the first keys stay in sight. first: of the tokens that come out otherwise. */
vn_status vn_fit_sinks(vn_trial *t, const vn_hypothesis *h, int64_t first, vn_error *err);
/* explain_rope.c */
vn_status vn_fit_rope(vn_trial *t, int node, vn_error *err);
/* explain_learned.c */
vn_status vn_fit_positions(vn_trial *t, int node, vn_error *err);
/* explain_numbers.c: a product with a mistake of the catalogue of another number than its row's. own: as above. */
vn_status vn_fit_numbers(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err);
/* explain_arrange.c. vn_try_numbers of what is stored: own (as many as the checkpoint has) is rounded to its format, its more precise twin is not. */
vn_status vn_try_as_stored(vn_trial *t, double *own, const double *fine, vn_hypothesis *h, vn_error *err);
/* explain_keys.c: slots of a cache that hold other tokens, by other numbers than the catalogue's, and keys of padding. own: as above. */
vn_status vn_fit_keys(vn_trial *t, const vn_tensor *own, vn_error *err);
/* explain_cap.c: logits c tanh(x / c), of n numbers each. */
vn_status vn_fit_cap(vn_trial *t, const double *own, const double *fine, const double *cand, int64_t n, vn_error *err);
/* explain_arrange.c */
vn_status vn_try_arrangements(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err);

/* explain_tiles.c: own, fine as above: rows that are another checkpoint's, or 0. */
vn_status vn_try_tiles(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err);

/* explain_pairs.c: two mistakes of the catalogue at once; concludes. */
vn_status vn_try_pairs(vn_trial *t, vn_error *err);

/* explain_looks.c: the error in words, into x->looks. */
vn_status vn_say_looks(vn_trial *t, const vn_tensor *own, vn_error *err);

/* explain_steps.c: what each step says of a point held against its other steps. */
vn_status vn_explain_steps(vn_trial *t, vn_explanations *x, vn_error *err);
/* explain_slots.c: all those of one point of attention, in n steps, one of which at least has no answer: slots of a cache that hold nothing. */
vn_status vn_explain_slots(vn_trial *t, vn_explanation **x, int n, vn_error *err);

/* explain_settle.c: of all explanations, once they are there: the order of aliases, and separate. */
void vn_explain_settle(const vn_comparison *c, vn_explanations *x);

#endif
