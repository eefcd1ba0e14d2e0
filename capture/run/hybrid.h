/* hybrid.h: an engine that is made of several, each of which runs some of the nodes.
 *
 * A side is the GPU engine or the reference in one precision. A plan is walked in
 * maximal runs of nodes of one side: before a run the side is given what its nodes
 * read and other sides made (submit, wait, read back; or out of memory), then it
 * computes, and so on. A value is rounded to the format of the side that it comes
 * to; nodes of one side keep their own format between them, so that neighbours
 * under f32@GLOB hand on float32.
 *
 * Where a node runs does not change between calls of a run, so what it keeps (keys
 * and values, a state) stays with its side. A checkpoint is handed over once, by
 * the side that made it, in that side's format and in execution order.
 *
 * With all nodes on one side the bits are that side's.
 *
 * Memory   that of its sides: a second precision on the GPU holds all weights again.
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
