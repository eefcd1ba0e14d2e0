/* isolate.h: finds the smallest sets of replacements that repair a run, coarse to fine.
 *
 * There are n toggles, each of which replaces one operation, and an oracle, which runs with some of
 * them on and says whether the outcome is good. A set is minimal if it is good and no toggle can be
 * removed from it. A minimal set of several toggles means that they only help together.
 *
 * The search starts from a good set and removes groups of toggles that are not needed: first
 * components (one operation in all layers), then layers if more than three components remain, then
 * single toggles. Each pass is adaptive group testing: bisection finds the first group that is
 * needed, and one run says whether any group after it is. If so, it tries blocks of groups,
 * doubling their size while none in them is needed, to find the next. So k culprits cost about k
 * log2(n / k) runs, and never far more than n. (The idea of delta debugging, Zeller and Hildebrandt
 * 2002, applied to repairs; the passes are group testing as of Du and Hwang.) A replacement is
 * expected not to make a run worse. If some do, a set of at most VN_TIGHT_SET toggles is minimal
 * nevertheless, because each member was left out once.
 *
 * Each set that is found is removed, and the remaining toggles are searched again, as long as they
 * can repair the run. So all disjoint alternatives are found. Once the rest cannot repair the run,
 * every repair needs a toggle of a found set.
 *
 * A set may be asked about several times. The oracle remembers its answers, and runs a set again
 * only if it is told to: once for each found set, to check that the oracle is repeatable.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>

enum { VN_MOST_SETS = 8, VN_TIGHT_SET = 8 };

/* Runs with the toggles on[i] (n), or remembers the answer of an earlier run. again: run it
 * even so. An error ends the search. */
typedef vn_status vn_oracle(void *ctx, const bool *on, bool again, bool *good, vn_error *err);

typedef struct vn_isolate_request {
	int                n;
	/* (n) number of the toggle's component and layer (-1: outside layers); NULL: only single
	 * toggles are tried */
	const int         *component, *layer;
	vn_oracle         *ask;
	void              *ctx;
	/* sets (n), tried first and in order; a good one is where the search starts */
	const bool *const *hint;
	int                n_hints;
	int               *left; /* set before each run: about how many follow it; NULL: not wanted */
} vn_isolate_request;

typedef struct vn_isolated {
	int   n;    /* toggles */
	bool  good; /* good with no toggle on: there is nothing to isolate */
	/* good with all toggles on; if not, no replacement helps and there are no sets */
	bool  helps;
	int   n_sets;
	bool *set[VN_MOST_SETS]; /* (n) each, smaller ones first */
	int   size[VN_MOST_SETS];
	bool  more; /* the search ended at VN_MOST_SETS; there may be more */
} vn_isolated;

/* Searches for minimal sets. VN_ERR_UNSUPPORTED: the oracle is not repeatable. Call
 * vn_isolated_finish afterwards, also after a failure. */
vn_status vn_isolate(const vn_isolate_request *q, vn_isolated *x, vn_error *err);
void      vn_isolated_finish(vn_isolated *x);
