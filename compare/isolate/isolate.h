/* isolate.h: finds the smallest sets of replacements that repair a run, by delta debugging.
 *
 * There are n toggles, each of which replaces one operation, and an oracle, which runs with some of
 * them on and says whether the outcome is good. A set is minimal if it is good and no toggle can be
 * left out of it. (ddmin of Zeller and Hildebrandt, "Simplifying and isolating failure-inducing
 * input", 2002, applied to what repairs instead of what breaks.) A minimal set of several toggles
 * means that they only help together.
 *
 * Each set that is found is removed, and the remaining toggles are searched again, as long as they
 * can repair the run. So all disjoint alternatives are found; once the rest cannot repair the run,
 * every repair needs a toggle of a found set.
 *
 * Cost: about 2 log2 n runs for one culprit of n; for k that must go together, at most about
 * k^2 + k log2 n in practice. Answers are remembered, but a found set is asked about twice, to see
 * that the oracle answers the same.
 */
#ifndef VN_COMPARE_ISOLATE_H
#define VN_COMPARE_ISOLATE_H

#include "libref/base/error.h"

#include <stdbool.h>

enum { VN_MOST_SETS = 8 };

/* on: (n). An error ends the search. */
typedef vn_status vn_oracle(void *ctx, const bool *on, bool *good, vn_error *err);

typedef struct vn_isolated {
	int   n;       /* toggles */
	int   runs;    /* how often the oracle was asked */
	bool  healthy; /* good with none on: there is nothing to isolate */
	bool  helps;   /* good with all on; if not, no replacement helps and there are no sets */
	int   n_sets;
	bool *set[VN_MOST_SETS];  /* (n) each, smaller ones first */
	int   size[VN_MOST_SETS];
	bool  more;    /* there may be further ones: the search ended at VN_MOST_SETS */
} vn_isolated;

/* hint: n_hints sets (n), tried before all toggles, in order: a good one is where the
 * search starts. None is needed. VN_ERR_UNSUPPORTED: the oracle does not answer the same
 * twice. vn_isolated_finish in any case. */
vn_status vn_isolate(int n, vn_oracle *ask, void *ctx, const bool *const *hint, int n_hints, vn_isolated *x, vn_error *err);
void      vn_isolated_finish(vn_isolated *x);

#endif
