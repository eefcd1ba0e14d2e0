/* hybrid.h: an engine made of several engines, its sides. Each side runs some of the nodes.
 *
 * A side is the GPU engine, or the reference, in one precision. Nodes whose formula a fault changes
 * (vn_node_is_experiment) run on the reference, because no shader computes them. The plan is run in
 * stretches of consecutive nodes of one side. Before a stretch, its side receives the values that
 * it reads and that other sides made (from the GPU: submit, wait, read back), rounded to its own
 * format. Within a stretch, values keep the side's format: neighbours under f32@GLOB exchange
 * float32.
 *
 * A node stays on its side for the whole run, and so does its state (cached keys and values, ...).
 * The side that makes a checkpoint hands it to the taps, once, in its own format, in execution
 * order.
 *
 * If all nodes are on one side, the bits are that side's.
 *
 * Memory   that of all sides: a second precision on the GPU needs a second copy of all weights.
 */
#pragma once

#include "capture/run/engine.h"
#include "libref/plan/plan.h"
#include "libref/plan/policy.h"

/* Opens the engine that a command asks for: a hybrid if o->force_ref or o->precise is given, or if
 * a fault of a GPU run changes a formula; else the reference or the GPU. Errors as in
 * capture/run/engine.h, too. */
vn_status vn_engine_open(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err);

/* Opens a hybrid engine, also without o->force_ref and o->precise, for vn_hybrid_force. Nodes on
 * the reference run in their own precision if they have one, else in the run's. */
vn_status vn_hybrid_open(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err);

/* Changes which nodes (n_nodes) run on the reference, in an engine from vn_hybrid_open, and resets
 * it. as: in this precision; NULL: in their own. */
vn_status vn_hybrid_force(const vn_engine *e, const bool *node, const vn_policy *as, vn_error *err);

/* Toggles: select which nodes of a plan run elsewhere, or in another precision.
 *
 * A glob selects the nodes that make checkpoints whose names it matches. Second names (layer1.input
 * is layer0.output) are matched only if it matches no first name, so `layer1.*` is layer 1, and
 * `layer1.input` works too.
 */

/* Sets node[i] (n_nodes) to true for the nodes that the glob selects, and leaves the others. Fails
 * if the glob is invalid or matches no checkpoint. */
vn_status vn_toggles_match(const vn_plan *p, const char *glob, bool *node, vn_error *err);

/* Sets policy[i] (n_nodes) for the nodes that "f32@GLOB" selects. Also fails if the precision is
 * unknown. */
vn_status vn_toggles_precision(const vn_plan *p, const char *precise, vn_policy *policy, vn_error *err);

/* Splits a comma-separated list of globs in place; commas inside braces do not split. Returns *n
 * pointers into text; the caller frees the list. An empty text has no globs. */
const char **vn_toggles_split(char *text, int *n);
