/* recompute_internal.h: what the files of recompute.h share: its state, what was captured of a
 * value, and how a plan computes it. Included by those files and their suites only. */
#pragma once

#include "compare/match/names.h"
#include "compare/replay/recompute.h"

#include "libref/exec/eval.h"
#include "libref/plan/fault.h"

/* The most rows of logits in an estimate, or in any computation if there are many logits. */
enum { VN_RECOMPUTE_SAMPLE = 64 };

typedef struct vn_recompute_width {
	vn_policy      policy;
	const vn_eval *eval;
	size_t         size; /* bytes per number */
	/* (values): captured, or made by the unmodified plan; NULL: not yet */
	void         **unmodified;
	/* the sampled rows of the checkpoint, made by the unmodified plan; NULL: not yet */
	void          *sampled;
} vn_recompute_width;

/* The unmodified plan with correct implementation i of each node of the span, and what it makes. */
typedef struct vn_recompute_variant {
	vn_plan           *plan; /* NULL: not yet */
	vn_recompute_width w;
} vn_recompute_variant;

enum { VN_RECOMPUTE_VARIANTS = 8 };

struct vn_recompute {
	const vn_opened      *o;
	const vn_checkpoints *all;
	vn_names              names;
	const vn_step        *step; /* all steps */
	int                   n_steps;
	vn_checkpoint       **point; /* (steps, values): checkpoint captured for a root value; NULL */
	int                   threads;
	vn_recompute_width    w[VN_N_WIDTHS];
	vn_recompute_variant  variant[VN_RECOMPUTE_VARIANTS];
	/* the checkpoint */
	vn_site               site;
	int                   at, when;    /* the checkpoint's step, counted from 0 */
	const vn_other_state *other;       /* what the checkpoint's call begins with; NULL: as usual */
	int                   disregarded; /* a value that is not taken from the recording; -1: none */
	int64_t               rows;        /* rows of the checkpoint among the site's tokens */
	int64_t               sample[VN_RECOMPUTE_SAMPLE];
	/* rows of a product's output for an estimate; if site.sampled, the only ones computed */
	int                   n_sample;
	vn_some_rows          some;     /* of logits: the columns of an estimate; n 0: not chosen */
	double                some_off; /* the nmse there that the unmodified plan leaves */
	void                 *own;      /* data of site.cand, unless it lies in the file */
	/* (nodes): marks of the search for the span: seen, and seen for all tokens */
	signed char          *seen;
	bool                  narrow; /* no operation of the span needs tokens that were not captured */
};

/* A plan that is tried: what it computes differently from the unmodified one. */
typedef struct vn_recompute_plan {
	vn_recompute       *p;
	const vn_plan      *plan;
	const vn_tensor    *weight;
	vn_recompute_width *w;
	const vn_plan      *base;    /* whose values w->unmodified holds: the unmodified plan, or a variant of it */
	signed char        *touched; /* (values of the plan): -1 not known yet */
	void              **made;    /* (values of the plan) that are touched */
	int64_t             few;     /* of those, only the rows of these first tokens are made; 0: all rows */
} vn_recompute_plan;

/* Returns the index of the i-th sampled row in site.cand, and in the result of a plan. */
int64_t vn_recompute_row(const vn_recompute *p, int i);

typedef enum vn_held { VN_HELD_NOT, VN_HELD_ROWS, VN_HELD_ALL } vn_held;

/* Returns what was captured of a value in all steps up to the checkpoint's: nothing, some rows of
 * each step, or all. */
vn_held   vn_recompute_held(const vn_recompute *p, int root);
/* Was enough of it captured to compute the checkpoint? */
bool      vn_recompute_known(const vn_recompute *p, int root);
/* Loads the candidate's numbers of a value (not VN_HELD_NOT) in format w, each row at its place
 * among all tokens. *data NULL: allocates it, with 0 in rows that were not captured; the caller
 * frees it. */
vn_status vn_recompute_load(vn_recompute *p, vn_recompute_width *w, int root, void **data, vn_error *err);
/* Did the candidate record the state of fixed size that this value (-1: none) shows, as step `step`
 * left it? It may be the checkpoint's own value in an earlier step. */
bool      vn_recompute_has_state(const vn_recompute *p, int step, int value);
/* Loads it in format w into data, which has room for it. */
vn_status vn_recompute_load_state(vn_recompute *p, vn_recompute_width *w, int step, int value, void *data,
                                  vn_error *err);

/* ---- what a changed plan computes differently (recompute_touched.c) -------------------------- */

/* Does the plan compute this value differently from the unmodified plan? False if the value is
 * taken from the recording. */
bool vn_recompute_is_touched(vn_recompute_plan *r, int value);
/* Is this value the checkpoint as the unmodified plan makes it? Many plans only continue from
 * there (one that caps the logits, for instance). Then the product that makes it, perhaps the
 * longest of the model, is computed once for all of them. */
bool vn_recompute_makes_target(vn_recompute_plan *r, int root);

/* ---- computing a value (recompute_run.c) ----------------------------------------------------- */

/* Computes the checkpoint. r: begun; ended here. */
vn_status vn_recompute_make(vn_recompute_plan *r, vn_tensor *out, vn_error *err);
void      vn_recompute_begin(vn_recompute_plan *r, vn_recompute *p, const vn_plan *plan, const vn_tensor *weight,
                             vn_recompute_width *w);
void      vn_recompute_end(vn_recompute_plan *r);
/* Returns a value for all tokens: captured, made for an earlier plan, or made now. Owned by r or
 * p. */
vn_status vn_recompute_value(vn_recompute_plan *r, int value, const void **data, vn_error *err);
/* Computes the sampled rows of a value into *out, which the caller frees. Values as wide as the
 * checkpoint are computed in these rows only; others in full, so that other plans can use them. */
vn_status vn_recompute_sampled(vn_recompute_plan *r, int value, void **out, vn_error *err);
/* What a node reads besides tensors. */
vn_args   vn_recompute_args(const vn_recompute_plan *r, const vn_node *n);
/* The sum of the squares of z - c, and that of c. */
typedef struct vn_recompute_error {
	double dd, cc;
} vn_recompute_error;

/* Adds to the sums where c is finite. (n) each. */
void   vn_recompute_add_error(const double *z, const double *c, int64_t n, vn_recompute_error *s);
/* Returns dd / cc; 0 where both are 0, infinite where only cc is. */
double vn_recompute_nmse(vn_recompute_error s);
