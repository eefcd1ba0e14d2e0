/* case.h: the checkpoint that is being explained, with the data that every strategy needs.
 *
 * A strategy is a function that makes trials about the checkpoint of a vn_case and
 * scores them (score.h); t->x collects the answers. Strategies are in trial/catalogue.h and in
 * the folders estimate, rearrange and explain; explain/explain_point.c lists them. This header also
 * finds which heads are wrong, and whether the run continued with the recorded numbers.
 *
 * Errors  strategies fail if memory runs out or a recording cannot be read. If no trial fits,
 *         that is no error: t->x then has no answer.
 */
#pragma once

#include "compare/trial/findings.h"
#include "compare/replay/local.h"
#include "compare/replay/recompute.h"
#include "libref/plan/fault.h"

/* Did the run continue with the numbers that were recorded? Decided from the operations that read
 * them. */
typedef enum vn_consumed { VN_CONSUMED_UNKNOWN, VN_CONSUMED_AS_RECORDED, VN_CONSUMED_OTHERS } vn_consumed;

/* The heads in which a mistake is made; the others are right. */
typedef struct vn_head_part {
	bool    in[VN_HEADS_MOST];
	int     heads;
	int64_t outer, inner; /* elements before and after the axis of heads */
} vn_head_part;

enum { VN_PAIRS_MOST = 4 };

/* The first failure: of reading a recording, or of the machine. From there on nothing is tried: a
 * function that fails leaves what it should have made empty, and need not say so. */
typedef struct vn_failure {
	vn_status st;
	vn_error  said, last; /* what st is about; room for the text of the next failure */
} vn_failure;

/* Returns the status, with its text in err. */
vn_status vn_failure_of(const vn_failure *f, vn_error *err);

typedef struct vn_case {
	vn_failure         *failed;
	const vn_opened    *opened;
	const vn_result    *result;
	vn_recompute       *recompute; /* positioned at the checkpoint, as is site */
	const vn_site      *site;
	vn_findings        *x;
	/* distances of the other implementations (reference_variants.h) from the unmodified
	 * operation */
	vn_replayed         reference_variants;
	/* the result of the unmodified operation: own in the candidate's precision, fine more
	 * precisely */
	vn_tensor           own, fine;
	const vn_some_rows *some; /* columns of logits in which trials are estimated first; NULL: none */
	vn_consumed         consumed;
	/* of a checkpoint without a plan (site->plan is NULL), by a replay file: the format that it is
	 * judged in, and the factor on its floor */
	vn_dtype            format;
	double              allow;
	const vn_head_part *part;  /* NULL: trials affect all heads */
	bool                brief; /* one of many checkpoints: slow strategies are skipped */
	bool                whole; /* mistakes in only some heads are not tried */
	/* origins for which pairs of mistakes were tried without success */
	int                 pairs_in_vain;
	/* two mistakes at once that explain an earlier origin; the first n_pairs */
	vn_trial            pair[VN_PAIRS_MOST];
	int                 n_pairs;
	/* an explanation of the same point in another layer, as in vn_explain_point; or NULL */
	const vn_findings  *like;
} vn_case;

/* Return the node that makes the checkpoint (-1: no plan), and the call in which it was recorded,
 * or NULL. */
int            vn_case_node(const vn_case *t);
const vn_step *vn_case_step(const vn_case *t);
/* Finds the rows along the axis of tokens (the first axis, if none has that name) whose error is
 * more than rounding: *first and *last; -1: none. NaN is such an error, and infinity in place of
 * another number. off (rows): tells for each whether it is one. NULL: not asked. */
void           vn_case_rows_off(const vn_case *t, bool *off, int64_t *first, int64_t *last);
/* Keeps the status st of a call that was given vn_case_error(t). Returns whether it succeeded. What
 * cannot be recomputed (VN_ERR_UNSUPPORTED), and a number that an operation refuses (VN_ERR_USAGE),
 * are not tried, and are no failure. */
bool           vn_case_made(const vn_case *t, vn_status st);
vn_error      *vn_case_error(const vn_case *t);
/* Move to a checkpoint, run a plan, and read an input of the checkpoint's node, as recompute.h has
 * it; and copy the plan. Return false, or NULL, if that fails or cannot be done. */
bool           vn_case_at(const vn_case *t, int checkpoint);
bool vn_case_run(const vn_case *t, const vn_plan *plan, const vn_tensor *weights, vn_recompute_as as, vn_tensor *out);
bool vn_case_input(const vn_case *t, int input, vn_recompute_as as, vn_tensor *out);
vn_plan *vn_case_clone(const vn_case *t);

/* Finds the heads that are wrong. Returns whether at least one is, and at least one is right. */
bool vn_head_part_find(const vn_case *t, vn_head_part *part);
/* Fills *part with the heads that h affects at this checkpoint. Returns false if it affects all. */
bool vn_head_part_of(const vn_case *t, const vn_trial *h, vn_head_part *part);
/* Copies the heads that are not in `part` from `unmodified` to z. */
void vn_head_part_splice(const vn_head_part *part, const vn_tensor *z, const vn_tensor *unmodified);

vn_consumed vn_case_consumed(const vn_case *t);
/* Is at least one operation that reads the checkpoint in the model's plan right on its recorded
 * numbers? Other readers may be wrong. */
bool        vn_case_consumed_as_recorded(const vn_case *t);

/* The result of applying a trial: a plan and weights to run, or numbers, or neither (it
 * changes nothing here). */
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
/* Gives *made a table of weights of its own for plan p: made->weights, where weight w has the
 * numbers made->rows of that format. */
void vn_made_put_weight(vn_made *made, const vn_plan *p, int w, vn_dtype dtype);
/* Allocates own and fine in double, in the shape of the checkpoint. */
void vn_made_room(const vn_case *t, vn_made *made);
/* Fills own with fine, rounded as the engine stores it. */
void vn_made_round(const vn_case *t, vn_made *made);

/* Return n numbers of t from the number `from` on, or all of them, in row-major order; NULL: no
 * memory. The caller frees them. */
double *vn_case_doubles_of(const vn_tensor *t, int64_t from, int64_t n);
double *vn_case_all_doubles_of(const vn_tensor *t);

/* Return the sum of the products, and of the squared differences, of n numbers, in their order. */
double vn_dot(const double *a, const double *b, int64_t n);
double vn_square_distance(const double *a, const double *b, int64_t n);
