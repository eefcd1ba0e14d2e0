/* identities.h: what must hold inside one recording, whatever engine made it.
 *
 * No reference is needed to see that a residual is not the sum it is named, that a
 * rotation changed a length or that probabilities do not add up: a tensor is then
 * mislabelled, captured elsewhere or overwritten (specs/models.md 2.8).
 *
 *   sum        attn_residual = input + attn_out;  output = attn_residual + down_proj
 *   chain      input of a layer is the output of the layer below, bit for bit
 *   rotation   every head of q_rope and k_rope is as long as before the rotation (times
 *              the attention factor, where a plan tells it; else where it is 1); not where the
 *              plan has a norm between the two, and it was not recorded
 *   probs      attn_probs are 0 to 1, add up to 1, and are 0 for later keys
 *   first row  at position 0 attn_context is v_proj, spread over the head's group
 *   rows       tokens of one id have one row of embed (families without positions in it)
 *   range      gdn_beta is 0 to 1, gdn_g at most 0
 *
 * What was not recorded, or only in part, is not checked. Tolerances are roundings
 * of the formats the tensors are stored in.
 */
#ifndef VN_CAPTURE_IDENTITIES_H
#define VN_CAPTURE_IDENTITIES_H

#include "capture/recording/recording.h"

typedef struct vn_identity {
	int     step, layer;
	char    words[240]; /* "layer1.attn_residual is not layer1.input + layer1.attn_out: ..." */
	int64_t broken, of; /* elements, or rows */
} vn_identity;

typedef struct vn_identities {
	int          checked;  /* identities that could be looked at */
	int          n;        /* of those broken */
	vn_identity *broken;   /* (n) */
} vn_identities;

/* Which layers to look at; -1 is what is outside layers. */
typedef bool vn_identity_wanted(void *context, int step, int layer);

/* Reads every tensor that takes part, a layer's once as far as they are small; memory: 48 MiB and the largest three.
 * Tensors whose axes are in another order than the point's are not looked at. wanted NULL: all. plan: of the model that
 * ran, where the recording itself does not say; NULL: it is not known.
 * vn_identities_free afterwards, whatever happened. */
vn_status vn_identities_of(vn_recording *r, const vn_plan *plan, vn_identity_wanted *wanted, void *context, vn_identities *found, vn_error *err);
void      vn_identities_free(vn_identities *found);

#endif
