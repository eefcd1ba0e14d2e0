/* ref_internal.h: internals of vn_ref. ref.c creates it and handles calls, node.c runs one node.
 *
 * Callers that run a call in parts may leave nodes out and write their outputs. So each slot
 * records which value it holds, and each state how far it is filled. A node whose inputs are
 * missing is refused.
 */
#pragma once

#include "libref/base/progress.h"
#include "libref/exec/eval.h"
#include "libref/exec/ref.h"
#include "libref/exec/states.h"

enum { VN_REF_CONVERT = 1 << 19 }; /* elements converted to the storage format at a time: work for several threads */

struct vn_ref {
	const vn_plan   *plan;
	const vn_tensor *weights;
	vn_policy        policy;
	const vn_eval   *eval;
	int              threads;
	bool             progress;
	bool (*stop)(void *ctx);
	void *stop_ctx;
	void (*made)(void *ctx, int node, int64_t first, int64_t tokens, void *x);
	void *made_ctx;
	void (*need)(const void *ctx, int weight);
	const void *need_ctx;
	int64_t     position, prompt; /* prompt: as in vn_args */
	size_t      size;             /* bytes per number: 4 or 8 */
	vn_states   states;
	vn_slots    slots;
	int        *holder; /* (slots.n): the value that the slot holds; -1: none */
	char       *memory; /* all slots, for room_tokens tokens */
	int64_t     room_tokens;
	char       *piece; /* (piece_bytes), of a streamed value: kept, because new memory costs a page fault every 4 KiB */
	size_t      piece_bytes;
	void       *convert; /* (VN_REF_CONVERT), scratch in the storage format */
	double     *share;   /* (n_nodes + 1), of the time of a call (gemm.h) */
	struct {
		bool           open;
		const int32_t *ids; /* (tokens), borrowed */
		int64_t        tokens;
		const vn_taps *taps; /* borrowed, or NULL */
		vn_progress    progress;
	} call;
};

static inline void *vn_ref_at(const vn_ref *r, int value)
{
	return r->memory + (size_t)(r->slots.offset[value] * r->room_tokens) * r->size;
}

/* Does the value's memory hold this value now? */
static inline bool vn_ref_holds(const vn_ref *r, int value)
{
	return r->slots.slot[value] >= 0 && r->holder[r->slots.slot[value]] == value;
}

/* Records that the value's memory now holds it. */
void      vn_ref_placed(vn_ref *r, int value);
vn_status vn_ref_interrupted(const vn_ref *r, vn_error *err);
/* Evaluates a node of the open call and hands its tapped outputs to the sink. also: an engine that
 * shares the node, or NULL. */
vn_status vn_ref_node(vn_ref *r, vn_ref *also, int node, vn_error *err);
/* Do both engines want the same of this node, a product, and read the same numbers? */
bool      vn_ref_shares(const vn_ref *r, const vn_ref *also, int node);
