/* toggles.h: selects which nodes of a plan run elsewhere, or in another precision.
 *
 * A glob selects the nodes that make checkpoints whose names it matches. Second names (layer1.input
 * is layer0.output) are matched only if it matches no first name, so `layer1.*` is layer 1, and
 * `layer1.input` works too.
 */
#ifndef VN_CAPTURE_TOGGLES_H
#define VN_CAPTURE_TOGGLES_H

#include "libref/plan/plan.h"
#include "libref/plan/policy.h"

/* Sets node[i] (n_nodes) to true for the nodes that the glob selects, and leaves the others. Fails
 * if the glob is invalid or matches no checkpoint. */
vn_status vn_toggles_match(const vn_plan *p, const char *glob, bool *node, vn_error *err);

/* Sets policy[i] (n_nodes) for the nodes that "f32@GLOB" selects. Also fails if the precision is
 * unknown. */
vn_status vn_toggles_precision(const vn_plan *p, const char *precise, vn_policy *policy, vn_error *err);

/* Splits a comma-separated list of globs in place; commas inside braces do not split. Returns *n
 * pointers into text; the caller frees the list. An empty text has no globs. */
const char **vn_toggles_split(char *text, int *n);

#endif
