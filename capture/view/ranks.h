/* ranks.h: joins the recordings of all ranks of a tensor-parallel run into one recording.
 *
 * The rules are those of specs/models.md, chapter 8:
 *
 *   sharded       concatenated along the axis that was cut (fused products part by part)
 *   replicated    must be equal on all ranks, and is taken once
 *   partial sums  attn_out, down_proj and embeddings that differ between ranks are added, unless the
 *                 residual stream shows that the engine added one rank's tensor alone (residual.h)
 *   gathered      scores that only some ranks have must be whole there
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
