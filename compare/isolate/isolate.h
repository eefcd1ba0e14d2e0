/* isolate.h: finds the smallest sets of replacements that repair a run, by delta debugging.
 *
 * There are n toggles, each of which replaces one operation, and an oracle, which runs with some of
 * them on and says whether the outcome is good. A set is minimal if it is good and no toggle can be
 * removed from it. (ddmin of Zeller and Hildebrandt, "Simplifying and isolating failure-inducing
 * input", 2002, applied to repairs instead of failures.) A minimal set of several toggles means
 * that they only help together.
 *
 * Each set that is found is removed, and the remaining toggles are searched again, as long as they
 * can repair the run. So all disjoint alternatives are found. Once the rest cannot repair the run,
 * every repair needs a toggle of a found set.
 *
 * Cost: about 2 log2 n runs for one culprit of n; for k that must go together, at most about k^2 +
 * k log2 n in practice. Answers are cached, but a found set is asked about twice, to check that the
 * oracle is repeatable.
 */
#ifndef VN_COMPARE_ISOLATE_H
#define VN_COMPARE_ISOLATE_H

#include "libref/base/error.h"

#include <stdbool.h>

enum { VN_MOST_SETS = 8 };

/* Runs with the toggles on[i] (n). An error ends the search. */
typedef vn_status vn_oracle(void *ctx, const bool *on, bool *good, vn_error *err);

typedef struct vn_isolated {
	int   n;       /* toggles */
	int   runs;    /* how often the oracle was asked */
	bool  healthy; /* good with no toggle on: there is nothing to isolate */
	/* good with all toggles on; if not, no replacement helps and there are no sets */
	bool  helps;
	int   n_sets;
	bool *set[VN_MOST_SETS];  /* (n) each, smaller ones first */
	int   size[VN_MOST_SETS];
	bool  more;    /* the search ended at VN_MOST_SETS; there may be more */
} vn_isolated;

/* Searches for minimal sets. hint: n_hints sets (n), tried first and in order; a good one is where
 * the search starts. May be empty. VN_ERR_UNSUPPORTED: the oracle is not repeatable. Call
 * vn_isolated_finish afterwards, also after a failure. */
vn_status vn_isolate(int n, vn_oracle *ask, void *ctx, const bool *const *hint, int n_hints, vn_isolated *x, vn_error *err);
void      vn_isolated_finish(vn_isolated *x);

#endif
