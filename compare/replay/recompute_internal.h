/* recompute_internal.h: what recompute.c and recompute_run.c share. */
#ifndef VN_COMPARE_RECOMPUTE_INTERNAL_H
#define VN_COMPARE_RECOMPUTE_INTERNAL_H

#include "compare/match/names.h"
#include "compare/replay/recompute.h"

#include "libref/exec/eval.h"

enum { VN_RECOMPUTE_SAMPLE = 64 }; /* rows of a vocabulary's scores */

typedef struct vn_recompute_width {
	vn_policy      policy;
	const vn_eval *eval;
	size_t         size;  /* bytes of a number */
	void         **unmodified; /* (values): what was captured, or the unmodified plan made; NULL: not yet */
} vn_recompute_width;

struct vn_recompute {
	vn_comparison   *c;
	vn_names         names;
	const vn_step   *step;    /* all of them */
	int              n_steps;
	int             *point;   /* (steps, values): the checkpoint that was captured of a root value; -1 */
	int              threads;
	vn_recompute_width   w[VN_N_WIDTHS];
	/* the checkpoint */
	vn_site          site;
	int              at, when; /* its step counted from 0 */
	int64_t          rows;    /* its own among the site's tokens */
	int64_t          sample[VN_RECOMPUTE_SAMPLE];
	int              n_sample; /* 0: all of its rows */
	void            *own;     /* the site's cand's numbers, where they are not the file's */
	signed char     *seen;    /* (nodes): by the search for the span, and whether for all tokens */
	bool             narrow;  /* no operation of the span asks for tokens that were not captured */
};

/* ---- recompute.c: what was captured ------------------------------------------------------------- */

typedef enum vn_held { VN_HELD_NOT, VN_HELD_ROWS, VN_HELD_ALL } vn_held;

/* What was captured of a value in all steps up to the checkpoint's: some rows of each, all. */
vn_held   vn_recompute_held(const vn_recompute *p, int root);
/* Enough of it to compute the checkpoint. */
bool      vn_recompute_known(const vn_recompute *p, int root);
/* The candidate's numbers of a value of which something is held, in that width, in their places among all tokens. *data, which
 * is the caller's to free, NULL: a new one, 0 where nothing was captured. */
vn_status vn_recompute_load(vn_recompute *p, vn_recompute_width *w, int root, void **data, vn_error *err);

#endif
