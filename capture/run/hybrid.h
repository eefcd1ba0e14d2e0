/* hybrid.h: an engine that consists of several, its sides; each side runs some of the nodes.
 *
 * A side is the GPU engine, or the reference, in one precision. The plan is run in stretches of
 * consecutive nodes of one side. Before a stretch, its side gets the values that it reads and other
 * sides made (from the GPU: submit, wait, read back), rounded to its own format. Within a stretch,
 * values keep the side's format: neighbours under f32@GLOB exchange float32.
 *
 * A node stays on its side for the whole run, and so does its state (cached keys and values, ...).
 * The side that makes a checkpoint hands it over, once, in its own format, in execution order.
 *
 * With all nodes on one side, the bits are that side's.
 *
 * Memory   that of all sides: a second precision on the GPU needs a second copy of all weights.
 */
#ifndef VN_CAPTURE_HYBRID_H
#define VN_CAPTURE_HYBRID_H

#include "capture/run/engine.h"

/* As vn_engine_open, which calls it where options speak of nodes: o->force_ref and
 * o->precise; none of either is a hybrid engine all the same, for vn_hybrid_force.
 * Nodes that run on the reference do so in their precision, else the run's. */
vn_status vn_hybrid_open(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err);

/* Of an engine that vn_hybrid_open made: these nodes (n_nodes) run on the reference
 * from now on, the others do not. as: in this precision; NULL: in their own. The
 * engine is reset. */
vn_status vn_hybrid_force(const vn_engine *e, const bool *node, const vn_policy *as, vn_error *err);

#endif
