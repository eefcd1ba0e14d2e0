/* identities.h: checks equations that must hold inside one recording, whatever engine made it.
 *
 * No reference is needed to see that a residual is not the sum it should be, that a rotation
 * changed a length, or that probabilities do not add up to 1. Such a tensor is mislabelled,
 * captured at the wrong place, or overwritten (specs/models.md 2.8).
 *
 *   sum        of the residual stream (residual.h), such as attn_residual = input + attn_out
 *   chain      input of a layer is the output of the layer below, bit for bit
 *   rotation   every head of q_rope and k_rope is as long as before the rotation (times the
 *              attention factor, from the plan, else 1). Skipped if the plan has a norm between the
 *              two that was not recorded
 *   probs      attn_probs are 0 to 1, add up to 1, and are 0 for later keys
 *   first row  at position 0 attn_context is v_proj, repeated over the query heads of each key head
 *   rows       equal token ids have equal rows of embed (in families whose embedding has no
 *              positions)
 *   again      a second recording of a checkpoint (name_map.h) holds its numbers, bit for bit, in
 *              every layer: else it was overwritten between the two
 *   range      gdn_beta is 0 to 1, gdn_g at most 0
 *
 * Tensors that were not recorded, or only in part, are not checked. Tolerances are roundings of the
 * formats in which the tensors are stored or, if these are coarser, in which the run computed.
 */
#pragma once

#include "capture/recording/recording.h"

#include <stdatomic.h>

typedef struct vn_identity {
	int     step;
	int64_t place;      /* place in the order of checks */
	char    words[240]; /* "layer1.attn_residual is not layer1.input + layer1.attn_out: ..." */
} vn_identity;

typedef struct vn_identities {
	int          checked; /* identities that could be checked */
	int          n;       /* how many are broken */
	vn_identity *broken;  /* (n) */
} vn_identities;

/* Checks the identities, as the plan has them; of a recording without a plan, the plan that its
 * config describes, if it has one. Reads every tensor that takes part; small tensors are read once
 * per layer. Memory: 48 MiB and the three largest tensors. Skips tensors whose axes are in another
 * order than the point's. Call vn_identities_free afterwards, also after a failure. */
vn_status vn_identities_of(vn_recording *r, vn_identities *found, vn_error *err);

/* What threads share that check one recording together. */
typedef struct vn_identities_shared {
	vn_recording  *r;
	const vn_plan *plan; /* the model's, if the recording has none; NULL: not known */
	/* which layers to check (-1: outside layers); NULL: all */
	bool (*wanted)(void *context, int step, int layer);
	void           *context;
	int             threads;
	const char     *precision; /* of the run, instead of what it records; NULL */
	_Atomic int64_t next;      /* the first layer of all steps that no thread has taken */
} vn_identities_shared;

/* Checks layers until none is left; every thread that takes part calls it. Several threads: only
 * after vn_recording_share returned true. *place: where it failed. All threads together use no more
 * memory than vn_identities_of. */
vn_status vn_identities_share(vn_identities_shared *s, vn_identities *found, int64_t *place, vn_error *err);
/* Adds what `more` found and frees it. The result is in the order of checks, whichever thread made
 * them. */
void      vn_identities_join(vn_identities *found, vn_identities *more);
void      vn_identities_free(vn_identities *found);
/* Counts the numbers of an entry that differ from those of the checkpoint that it is a second
 * recording of, and finds the first. *differing is -1 if the entry is not a second recording, or
 * the first one is missing. */
vn_status vn_identity_again(vn_recording *r, int entry, int64_t *differing, int64_t *first, vn_error *err);
