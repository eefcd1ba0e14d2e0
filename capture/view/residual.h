/* residual.h: checks a tensor against the residual stream around it.
 *
 *   attn_residual = input + attn_out        output = attn_residual + down_proj
 *
 * in most families (specs/models.md 2.8); what a layer adds is read off the plan's ADD nodes, whose
 * first input is the stream. Use it when it is unclear what a tensor holds, for example a rank's
 * partial sum or the whole: the right reading is the one for which the equation holds. Joined ranks
 * (ranks.h) and name maps ask here; identities.h reports where a recording breaks the equations.
 */
#pragma once

#include "capture/recording/recording.h"

/* Checkpoints: after = before + added. */
typedef struct vn_residual_sum {
	char after[VN_NAME_MAX], added[VN_NAME_MAX];
	/* [1]: used if [0] was not recorded, the output of the layer below; or "" */
	char before[2][VN_NAME_MAX];
} vn_residual_sum;

/* Fills *s with sum i of a layer, from 0; false after the last. p NULL: with the names of Llama. */
bool vn_residual_sum_at(const vn_plan *p, int layer, int i, vn_residual_sum *s);
/* Fills *s with the sum that adds this checkpoint to the stream. Returns false if none does. */
bool vn_residual_sum_of(const vn_plan *p, const char *added, vn_residual_sum *s);

/* A tensor of a recording. */
typedef struct vn_term {
	vn_recording *r;
	int           entry;
} vn_term;
enum { VN_MOST_TERMS = 2 + 256 };

/* Sets *left = |whole - before - rest|^2 / |rest|^2 in double, where the first of n terms is
 * `whole`, the second `before`, and `rest` the sum of the others; -1 if it is undefined: a term is
 * missing (entry -1), not to be decoded, or of another size; the rest is zero; or there is a NaN.
 * Fails if reading or memory fails: then nothing may be decided (vn_status_ends_job). */
vn_status vn_residual_left(const vn_term *term, int n, double *left, vn_error *err);
/* Is the residual so small that the equation holds? (Half of a sum leaves about half.) */
bool      vn_residual_closes(double left);
