/* isolate.h: the smallest sets of replacements that repair a run, by delta debugging.
 *
 * There are n toggles, each of which replaces one operation, and an oracle that runs
 * with some of them on and says whether the outcome is good. A set is minimal when it
 * is good and no toggle can be left out of it (Zeller and Hildebrandt, "Simplifying and
 * isolating failure-inducing input", 2002: ddmin, here of what repairs instead of what
 * breaks). One of several toggles means that they only help together.
 *
 * A set that is found is taken out, and what is left is searched again, as long as it
 * repairs the run: so culprits that do without one another are all found, and when it
 * no longer does, every repair needs one of those that were.
 *
 * For one culprit of n about 2 log2 n runs; for k that must go together at most about
 * k^2 + k log2 n in practice. What was asked once is not asked again, but a found set is,
 * to see that the oracle answers the same twice.
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
