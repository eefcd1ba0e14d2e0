/* gemma.h: builds the plan that Gemma 2 and Gemma 3 share.
 *
 * A decoder with a norm before and behind each part, whose norms store their weight minus one. Most
 * layers have a window. The embedding is multiplied by sqrt(D); scores, and the logits, may have a
 * soft cap; queries are scaled by a number of the config (specs/models.md, "Gemma").
 */
#ifndef VN_LIBREF_FAMILY_GEMMA_H
#define VN_LIBREF_FAMILY_GEMMA_H

#include "libref/family/decoder.h"

typedef struct vn_gemma {
	vn_config c;
	vn_rope   local;                /* of layers with a window; theta 0: as of the others, c.rope */
	double    query_scale;          /* scores are divided by its root */
	double    score_cap, logit_cap; /* 0: none */
} vn_gemma;

extern const vn_family_weight vn_gemma_weights[];

/* Reads what both spell alike; m holds the defaults. */
vn_status vn_gemma_read(const char *path, const json_t *o, vn_gemma *m, vn_error *err);
/* Reads a soft cap; null: none. */
vn_status vn_gemma_read_cap(const char *path, const json_t *o, const char *key, double *cap, vn_error *err);
/* Builds the plan. Changes m only where it refers to lists (vn_config_lists). */
vn_status vn_plan_gemma(const char *path, vn_gemma *m, vn_plan **plan, vn_error *err);

#endif
