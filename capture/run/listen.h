/* listen.h: the sink between an engine and a store.
 *
 * A listener passes the selected tensors on to the store, keeps the last token's scores (logits) for
 * whoever chooses the next token, and stops the run at a signal.
 *
 * If those scores were not selected for the store, the listener asks the engine for more rows than
 * the store gets, and cuts the rest off.
 */
#ifndef VN_CAPTURE_LISTEN_H
#define VN_CAPTURE_LISTEN_H

#include "libref/plan/tap.h"

typedef struct vn_listener {
	const vn_plan *plan;
	vn_taps     asked;    /* what goes to the store, its sink included; borrowed */
	int         logits;   /* the value whose last row is kept; -1: none is */
	bool       *want;     /* (n_values) what the engine is asked for */
	vn_dtype    dtype;    /* of the row */
	void       *row;      /* (vocab) scores of the last token of the last call; room for doubles */
	bool        heard;    /* all of it is here */
	/* The call at hand: rows of the engine and of the store, from its first token. */
	int64_t     first, count, to_first, to_count;
	bool        hear;
	/* The tensor at hand. */
	bool        pass, keep, cut;
	size_t      width;
	int64_t     inner, at; /* elements of a row; elements so far */
} vn_listener;

/* asked: as for the engine, without the listener. VN_ERR_UNSUPPORTED: the scores
 * are wanted and the plan has none. vn_listener_finish in any case. */
/* n_values: of the plan that runs, which may have more values (fault.h). */
vn_status vn_listener_init(vn_listener *l, const vn_plan *plan, int n_values, const vn_taps *asked, bool scores, vn_error *err);
void      vn_listener_finish(vn_listener *l);

/* The taps to give to the next call of an engine with `past` tokens in its cache;
 * scores: of this call too, when they were asked for at all. They are the
 * listener's, valid until the call ends. */
vn_taps   vn_listener_taps(vn_listener *l, int64_t past, int64_t tokens, bool scores);

#endif
