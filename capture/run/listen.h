/* listen.h: the sink between an engine and a store.
 *
 * A listener passes the selected tensors on to the store, keeps the logits of the last token for
 * choosing the next one, and stops the run at a signal.
 *
 * If those logits were not selected for the store, the listener asks the engine for more rows than
 * the store gets, and drops the rest.
 */
#pragma once

#include "libref/plan/tap.h"

typedef struct vn_listener {
	const vn_plan *plan;
	vn_taps        asked;  /* what goes to the store, with its sink; borrowed */
	int            logits; /* value whose last row is kept; -1: none */
	bool          *want;   /* (n_values) what the engine is asked for */
	vn_dtype       dtype;  /* of the row */
	void          *row;    /* (vocab) logits of the last token of the last call; room for doubles */
	bool           heard;  /* the row is complete */
	/* The current call: the rows of the engine and of the store, from its first token. */
	int64_t        first, count, to_first, to_count;
	bool           hear;
	/* The current tensor. */
	bool           pass, keep, cut;
	size_t         width;
	int64_t        inner, at; /* elements per row; elements received */
} vn_listener;

/* asked: the taps as for an engine without a listener. scores: keep the last logits. n_values: of
 * the plan that runs, which may have more values than plan (fault.h). VN_ERR_UNSUPPORTED: scores
 * are wanted and the plan has none. Call vn_listener_finish afterwards, also after a failure. */
vn_status vn_listener_init(vn_listener *l, const vn_plan *plan, int n_values, const vn_taps *asked, bool scores,
                           vn_error *err);
void      vn_listener_finish(vn_listener *l);

/* Returns the taps for the next call of an engine with `past` cached tokens. scores: keep the
 * logits of this call. The taps belong to the listener and are valid until the call ends. */
vn_taps vn_listener_taps(vn_listener *l, int64_t past, int64_t tokens, bool scores);
