/* engine.h: what every engine that executes a plan can do, as one table of functions.
 *
 * The reference (libref/exec/ref.h) and the GPU (libgpu/gpu.h) each export a table. `self` is the
 * engine: a vn_ref or a vn_gpu. Callers that know which engine they have call through its table,
 * too: vn_ref_ops.forward(ref, ...).
 *
 * forward    Executes the whole plan on `tokens` ids, which follow those of earlier calls. The
 *            states (cached keys and values, for example) stay for the next call: one call with the
 *            prompt is a prefill, further calls with one token each decode. taps: NULL for none.
 *            Errors: an id outside the vocabulary, no tokens, more tokens than the model's context.
 *            A failed call leaves the position and the states as they were.
 *
 * A call in parts, for a pass in which some nodes are computed elsewhere: begin; then run, read,
 * write and flush, any number of times; then end. forward is begin, run of all nodes, and end with
 * keep.
 *
 * begin      Fixes tokens and taps. ids, taps and taps->want must live until end.
 * run        Executes nodes [from, to), which must come after those run or written so far. Nodes
 *            left out before `from` are skipped. Errors: a node whose input was neither run nor
 *            written; a node whose state lacks an earlier call, because that call skipped the node.
 * read       Copies out a value (tokens, row) in the storage format of the policy. Error: the value
 *            does not exist. A value that shows a state has the format of vn_policy_dtype and is
 *            the current state; a growing state can be read once the rows of this call were
 *            appended to it.
 * write      Sets a value, in the format of read; the node that makes the value is then skipped.
 *            data can be freed afterwards. Taps show what a node made, never what was written. A
 *            state of fixed size is written like a value. A growing state is not: the rows that its
 *            node reads are appended as soon as they are made or written.
 * flush      Hands over the taps so far, before other code writes into the same sink.
 * end        Skips the rest and hands over the taps. keep: the position advances, and the states
 *            are those after the call. Without keep, end never fails; if no call is open, it does
 *            nothing.
 *
 * position   Returns the number of tokens of all kept calls.
 * reset      Resets the states to those at the start. Ends a call.
 * facts      States facts about the engine, for a recording.
 * compiling  Returns the seconds that calls have spent so far on compiling code for the device.
 * destroy    Frees the engine; ends a call.
 */
#pragma once

#include "libref/base/facts.h"
#include "libref/plan/tap.h"

typedef struct vn_engine_ops {
	vn_status (*forward)(void *self, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err);
	int64_t (*position)(const void *self);
	void (*reset)(void *self);
	void (*facts)(const void *self, vn_facts *f);
	void (*destroy)(void *self);
	double (*compiling)(const void *self); /* NULL: it compiles nothing */
	/* NULL in an engine that consists of others. */
	vn_status (*begin)(void *self, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err);
	vn_status (*run)(void *self, int from, int to, vn_error *err);
	vn_status (*read)(void *self, int value, void *data, vn_error *err);
	vn_status (*write)(void *self, int value, const void *data, vn_error *err);
	vn_status (*flush)(void *self, vn_error *err);
	vn_status (*end)(void *self, bool keep, vn_error *err);
} vn_engine_ops;
