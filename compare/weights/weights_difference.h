/* weights_difference.h: what is compared, a side, and what is found, a difference. The files that
 * find differences and those that put them into words are above it (weights.h).
 *
 * Owner  what a side and a difference point to is borrowed.
 */
#pragma once

#include "libref/family/family.h"
#include "libref/model/model.h"

#include <stdbool.h>

typedef struct vn_weight_side {
	const vn_weight_row *row; /* (n), sorted by name */
	int                  n;
	const vn_tensor     *numbers; /* (n), data NULL if unknown; NULL: none are known */
	const vn_plan       *plan;    /* for the sizes of heads; NULL: not known */
	const vn_family     *family;  /* for the names; NULL: not known */
	/* from a GGUF file; the changes of llama.cpp's converter are undone (specs/models.md, 4.6) */
	bool                 gguf;
	bool                 copied; /* the table of a model, not measured on the run */
} vn_weight_side;

/* The evidence of a finding. */
typedef enum vn_weight_proof { VN_PROOF_STATISTICS, VN_PROOF_NUMBERS, VN_PROOF_TABLE, VN_PROOF_DIGEST } vn_weight_proof;

/* What was measured of two weights. */
typedef enum vn_weight_measure {
	VN_WEIGHT_NOT_MEASURED,
	VN_WEIGHT_APART,       /* the root of the nmse */
	VN_WEIGHT_CORRELATION, /* the coefficient */
	VN_WEIGHT_RMS,         /* the candidate's rms / the reference's */
	VN_WEIGHT_PLACES,      /* a count */
	VN_N_WEIGHT_MEASURES
} vn_weight_measure;

enum { VN_WEIGHT_WORDS = 160 };

typedef struct vn_weight_difference {
	const vn_weight_row *row[2];   /* [0] the reference's, [1] the candidate's; NULL: missing */
	int                  layer;    /* -1: outside layers */
	const char          *part;     /* its name after the layer: "self_attn.q_proj.weight" */
	const char          *kind;     /* "transposed": one word, of specs/weights.md */
	char                 id[12];   /* in the catalogue, such as "W1"; "": none */
	const char          *words;    /* interned */
	uint64_t             key;      /* equal for the same finding, on the same side, with the same parameters */
	vn_weight_measure    measured; /* what `measure` is */
	double               measure;
	vn_weight_proof      proof;
	bool                 certain;
} vn_weight_difference;
