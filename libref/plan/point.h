/* point.h: the places in a model where a checkpoint can be taken.
 *
 * They are listed in one table (point.def), from which names in files and `vernier points` are
 * derived. A point says what a tensor means and in which basis: two tensors may be compared only if
 * those agree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef enum vn_point {
#define POINT(NAME, ...) VN_POINT_##NAME,
#include "libref/plan/point.def"
	VN_N_POINTS
} vn_point;

/* Where in a model a point is. Only the name of one in a layer has the prefix "layer3.". */
typedef enum vn_point_place { VN_BEFORE_LAYERS, VN_INSIDE_LAYER, VN_BEHIND_LAYERS } vn_point_place;

/* Do its numbers show the format in which an engine computes? */
typedef enum vn_point_format { VN_FORMAT_HIDES, VN_FORMAT_MAY, VN_FORMAT_SHOWS } vn_point_format;

typedef struct vn_point_info {
	const char     *name;  /* "q_rope" */
	const char     *axes;  /* "token head dim": one word per axis, outermost first */
	const char     *basis; /* "head" */
	const char     *means; /* description, half a line */
	vn_point_place  place;
	vn_point_format format;
} vn_point_info;

const vn_point_info *vn_point_get(vn_point p);
/* Is it the scores that a softmax reads: of the model, or of its prediction head? */
static inline bool   vn_point_is_logits(vn_point p)
{
	return p == VN_POINT_LOGITS || p == VN_POINT_MTP_LOGITS;
}
/* Returns word i of a dims string, from 0, and its length *n; *n is 0 after the last word. */
const char *vn_axes_word(const char *axes, int i, size_t *n);
/* Returns the index of a word in a dims string, or -1. */
int         vn_axes_find(const char *axes, const char *word);

int vn_point_from_name(const char *name, vn_point *p); /* 0 when unknown */

enum { VN_POINT_HINT = 320 };

/* What a glob that matches none of n names may stand for: " (did you mean 'layer0.*'?)", " (its
 * layers are 0 to 23)", or "". name_of: the i-th name. Returns text. */
const char *vn_point_hint(const char *glob, const char *(*name_of)(const void *context, int i), const void *context,
                          int n, char text[VN_POINT_HINT]);

/* Returns the layer in a checkpoint's name ("layer3.q_rope"), or -1. */
int         vn_name_layer(const char *name);
/* Returns a checkpoint's name without its layer ("q_rope"): a pointer into name. A name without a
 * layer is returned whole: "logits", or another engine's "model.layers.3.q". */
const char *vn_name_in_layer(const char *name);
