/* toggles.h: which nodes of a plan run elsewhere, or in another precision.
 *
 * A glob speaks of the node that makes a checkpoint whose name it matches. Second
 * names (layer1.input is layer0.output) count where it matches no first one, so
 * that `layer1.*` is layer 1 and `layer1.input` can still be said.
 */
#ifndef VN_CAPTURE_TOGGLES_H
#define VN_CAPTURE_TOGGLES_H

#include "libref/plan/plan.h"
#include "libref/plan/policy.h"

/* node (n_nodes): true for each that the glob speaks of; the others stay as they are.
 * Refused: a glob that is none, or that matches no checkpoint. */
vn_status vn_toggles_match(const vn_plan *p, const char *glob, bool *node, vn_error *err);

/* policy (n_nodes): set for each node that "f32@GLOB" speaks of. Refused also: a
 * word that is no precision. */
vn_status vn_toggles_precision(const vn_plan *p, const char *precise, vn_policy *policy, vn_error *err);

/* Cuts a comma-separated list of globs where it stands, commas inside braces apart:
 * *list, the caller's to free, has *n pointers into text. Empty text is no glob. */
vn_status vn_toggles_split(char *text, const char ***list, int *n, vn_error *err);

#endif
