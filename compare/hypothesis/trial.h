/* trial.h: the checkpoint that is being explained, with what every strategy needs: the unmodified
 * operation, which heads are wrong, where calls begin, whether the run continued with what was
 * recorded, and room for what a hypothesis makes. */
#ifndef VN_COMPARE_TRIAL_H
#define VN_COMPARE_TRIAL_H

#include "compare/hypothesis/explanation.h"
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

typedef struct vn_explain_trial {
	vn_comparison        *c;
	vn_recompute         *recompute; /* positioned at the checkpoint, as is site */
	const vn_site        *site;
	vn_explanation       *x;
	vn_replayed           variants; /* floors of the other reference variants against the unmodified operation */
	/* what the unmodified operation makes, in the candidate's precision and more precisely */
	vn_tensor             own, fine;
	int64_t               elements;
	const vn_some_rows   *some; /* columns of logits in which hypotheses are looked at first; NULL: none */
	vn_consumed           consumed;
	const vn_head_part   *part;  /* NULL: hypotheses affect all heads */
	bool                  brief; /* one of many checkpoints: slow strategies are skipped */
	bool                  whole; /* mistakes in only some heads are not tried */
	/* origins for which pairs of mistakes were tried without success */
	int                   pairs_in_vain;
	const vn_explanation *like; /* of the same point in another layer: its answers alone are tried; NULL: all */
} vn_explain_trial;

/* Finds the heads that are wrong. *some: at least one is wrong, and at least one is right. */
vn_status vn_head_part_find(const vn_explain_trial *t, vn_head_part *part, bool *some, vn_error *err);
/* Fills *part with the heads that h affects at this checkpoint. Returns false if it affects all. */
bool      vn_head_part_of(const vn_explain_trial *t, const vn_hypothesis *h, vn_head_part *part);
/* Copies the heads that are not in `part` from `unmodified` to z. */
void      vn_head_part_splice(const vn_head_part *part, const vn_tensor *z, const vn_tensor *unmodified);

/* Returns (t->site->tokens) numbers: the position at which the candidate's call of each token
 * begins, also of calls that were joined to one step; -1: a first call, or a call of one token.
 * *later: does the checkpoint have a row of another call? NULL: no memory. The caller frees it. */
int64_t *vn_own_calls(const vn_explain_trial *t, bool *later);
/* The position at which the call of token i begins; calls of `call` tokens, or (VN_OWN_CALLS) as in
 * begins. -1: a first call, or one of one token. */
int64_t  vn_call_of(const int64_t *begins, int call, int64_t i);

vn_consumed vn_what_was_consumed(const vn_explain_trial *t);
/* Is an operation that reads the checkpoint right on its recorded numbers? Other readers may be
 * wrong. */
bool        vn_consumed_as_recorded(const vn_explain_trial *t);

/* What a hypothesis makes of the checkpoint: a plan and weights to run, or numbers, or neither (it
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

void      vn_made_finish(vn_made *made);
/* Gives *made a table of weights of its own (made->table), a copy of made->weights, for plan p. */
vn_status vn_made_copy_table(vn_made *made, const vn_plan *p, vn_error *err);
/* Allocates own and fine in double, in the shape of the checkpoint. */
vn_status vn_made_room(const vn_explain_trial *t, vn_made *made, vn_error *err);
/* Fills own with fine, as the engine stores it. */
void      vn_made_round(const vn_explain_trial *t, vn_made *made);

#endif
