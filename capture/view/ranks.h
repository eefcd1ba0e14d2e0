/* ranks.h: the recordings of the ranks of one tensor-parallel run as one recording.
 *
 * By the rules of specs/models.md, chapter 8: what is cut along an axis is put together
 * along it (fused products part by part), what every rank has is one, and must be the
 * same, and attn_out, down_proj and embeddings that are not the same are partial sums,
 * and are added, unless the residual stream behind them shows that one rank's alone was
 * added there. Scores that only some ranks have were gathered to them, and must be whole.
 */
#ifndef VN_CAPTURE_RANKS_H
#define VN_CAPTURE_RANKS_H

#include "capture/view/like.h"

typedef struct vn_ranks_use {
	const vn_like *like;   /* of the whole; its ranks are n */
	bool  allow_incomplete;
	bool  allow_replicas;  /* what every rank should have, and have the same: where not, the first one's, and a word, not an error */
	void (*say)(void *context, const char *words); /* what was decided by content; NULL */
	void  *context;
	int    placed, summed, same; /* set: tensors put together, added, taken from one */
	bool   all_told;       /* set: a file says how many ranks there were, or an axis has its whole length once all are together */
} vn_ranks_use;

/* *r is made of rank (n), which it takes, also on failure. In their order, or where all
 * say in /run which rank of how many they are (rank, world_size) in that. The weights and
 * the plan of a rank are not the model's and are forgotten.
 * Errors   a rank or a number of ranks that is none, a rank missing, twice, incomplete, of another run, engine, precision or family, part of a
 *          tensor that a rank does not have, shapes that do not add up, replicas that disagree. */
vn_status vn_ranks_join(vn_recording **rank, int n, vn_ranks_use *use, vn_recording **r, vn_error *err);

/* What a file says in /run of which rank it is (-1: nothing), of how many (-1: nothing). */
vn_status vn_ranks_said(const vn_recording *r, int64_t *rank, int64_t *of, vn_error *err);

#endif
