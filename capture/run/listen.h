/* listen.h: what stands between an engine and a store: it passes on what was
 * asked for, keeps the scores of the last token for whoever chooses the next,
 * and ends the run at a signal.
 *
 * The scores may have to be heard where nobody asked for them: the engine is
 * then told to hand over more rows than go to the store, and they are cut here.
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
