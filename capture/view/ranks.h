/* ranks.h: joins the recordings of all ranks of a tensor-parallel run into one recording.
 *
 * The rules are those of specs/names.md, Ranks:
 *
 *   sharded       concatenated along the axis that was cut (fused products part by part)
 *   replicated    must be equal on all ranks, and is taken once
 *   partial sums  products that lead back to the residual stream (attn_out, down_proj) and
 *                 embeddings that differ between ranks are added, unless the stream shows that the
 *                 engine added one rank's tensor alone (residual.h)
 *   gathered      scores that only some ranks have must be whole there
 */
#pragma once

#include "capture/view/like.h"

typedef struct vn_ranks_use {
	const vn_like *like; /* of the whole; its ranks are n */
	bool           allow_incomplete;
	/* a tensor that should be equal on all ranks but differs, or is missing on some, is taken from
	 * the first, with a message instead of an error */
	bool           allow_replicas;
	void (*say)(void *context, const char *words); /* receives decisions made by content; NULL */
	void *context;
	int   placed, summed, same; /* out: tensors concatenated, summed, taken from one rank */
	/* out: a file states the number of ranks, or an axis has its full length once all are joined */
	bool  all_told;
	/* out: scores that are a shard of the vocabulary on every rank, by name and shares ("logits
	 * (256 + 256)"), empty: none. They are joined, but the recordings do not show that the run
	 * gathers them before it samples. */
	char  not_gathered[200];
} vn_ranks_use;

/* Joins rank (n) into *r, and takes ownership of them, also after a failure. They are joined in the
 * order that all files state in /run (rank, world_size), else in the order given. Weights and plan
 * of a rank are not the model's, and are dropped.
 *
 * Errors   a rank or number of ranks that is impossible; a rank missing, given twice, or
 *          incomplete; ranks of different runs, engines, precisions or families; a part of a tensor
 *          missing on a rank; shapes that do not fit; replicas that differ. */
vn_status vn_ranks_join(vn_recording **rank, int n, vn_ranks_use *use, vn_recording **r, vn_error *err);

/* Reads the rank and the number of ranks (of) that a file states in /run; -1: not stated. */
vn_status vn_ranks_said(const vn_recording *r, int64_t *rank, int64_t *of, vn_error *err);
