/* probe_inside.h: what probe.c and probe_run.c share. */
#ifndef VN_COMPARE_PROBE_INSIDE_H
#define VN_COMPARE_PROBE_INSIDE_H

#include "compare/match/names.h"
#include "compare/replay/probe.h"

#include "libref/exec/eval.h"

enum { VN_PROBE_SAMPLE = 64 }; /* rows of a vocabulary's scores */

typedef struct vn_probe_width {
	vn_policy      policy;
	const vn_eval *eval;
	size_t         size;  /* bytes of a number */
	void         **sound; /* (values): what was captured, or the sound plan made; NULL: not yet */
} vn_probe_width;

struct vn_probe {
	vn_comparison   *c;
	const vn_plan   *plan;
	const vn_tensor *weight;
	vn_names         names;
	const vn_step   *step;    /* all of them */
	int              n_steps;
	int             *point;   /* (steps, values): the checkpoint that was captured of a root value; -1 */
	int              threads;
	vn_probe_width   w[VN_PROBE_WIDTHS];
	/* the checkpoint */
	int              at, target, when; /* checkpoint, its root value, its step counted from 0 */
	int64_t          tokens;  /* of all steps up to it */
	int64_t          first, rows; /* its own among them */
	int64_t          sample[VN_PROBE_SAMPLE];
	int              n_sample; /* 0: all of its rows */
	vn_tensor        cand;
	void            *own;     /* cand's numbers, where they are not the file's */
	int             *span, n_span;
	signed char     *seen;    /* (nodes): by the search for the span, and whether for all tokens */
	bool             narrow;  /* no operation of the span asks for tokens that were not captured */
};

/* ---- probe.c: what was captured ------------------------------------------------------------- */

typedef enum vn_held { VN_HELD_NOT, VN_HELD_ROWS, VN_HELD_ALL } vn_held;

/* What was captured of a value in all steps up to the checkpoint's: some rows of each, all. */
vn_held   vn_probe_held(const vn_probe *p, int root);
/* Enough of it to compute the checkpoint. */
bool      vn_probe_known(const vn_probe *p, int root);
/* The candidate's numbers of a value of which something is held, in that width, in their places among all tokens. *data, which
 * is the caller's to free, NULL: a new one, 0 where nothing was captured. */
vn_status vn_probe_load(vn_probe *p, vn_probe_width *w, int root, void **data, vn_error *err);

#endif
