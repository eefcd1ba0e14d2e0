/* residual.h: checks a tensor against the residual stream around it.
 *
 *   attn_residual = input + attn_out        output = attn_residual + down_proj
 *
 * (specs/models.md 2.8.) Use it when it is unclear what a tensor holds, for example a rank's
 * partial sum or the whole: the right reading is the one for which the equation holds. Joined ranks
 * (ranks.h) and name maps ask here; identities.h reports where a recording breaks the equations.
 */
#ifndef VN_CAPTURE_RESIDUAL_H
#define VN_CAPTURE_RESIDUAL_H

#include "capture/recording/recording.h"

/* Points: whole = before + added. */
typedef struct vn_residual_equation {
	const char *whole, *before, *added;
} vn_residual_equation;
enum { VN_RESIDUALS = 2 };
extern const vn_residual_equation vn_residual_equations[VN_RESIDUALS];

/* The checkpoints of the residual stream around what a layer adds to it. */
typedef struct vn_stream {
	char after[VN_NAME_MAX];
	/* [1]: used if [0] was not recorded, the output of the layer below; or "" */
	char before[2][VN_NAME_MAX];
} vn_stream;

/* Fills *s. added: the point ("attn_out"). Returns false if it is not added to the stream. */
bool vn_stream_around(const char *added, int layer, vn_stream *s);

/* A tensor of a recording. */
typedef struct vn_term {
	vn_recording *r;
	int           entry;
} vn_term;
enum { VN_MOST_TERMS = 2 + 256 };

/* Returns |whole - before - rest|^2 / |rest|^2 in double, where the first of n terms is `whole`,
 * the second `before`, and `rest` the sum of the others. Returns -1 if it is undefined: a term is
 * missing (entry -1), unreadable, or of another size; the rest is zero; or there is a NaN. */
double vn_residual_left(const vn_term *term, int n);
/* Is the residual so small that the equation holds? (Half of a sum leaves about half.) */
bool   vn_residual_closes(double left);

#endif
