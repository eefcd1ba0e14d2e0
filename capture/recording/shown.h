/* shown.h: the number format that a recording's numbers show, whatever they are stored in.
 *
 * The digits that a number needs show in the number: bfloat16 results written as float32 still end
 * in 16 zero bits. A run claims the narrowest format that the outputs of its products and norms
 * fit. Embeddings, caches, integers and other copies keep the format of what they copy, so they do
 * not vote; sums, activations and scores of experts vote only if nothing else was recorded. Nor do
 * logits and these scores where they are finer than the rest: many engines compute only them in
 * float32.
 */
#pragma once

#include "capture/recording/recording.h"

enum { VN_SHOWN_OTHERS = 160 };

typedef struct vn_shown_precision {
	int      votes; /* tensors that were examined and show a format; 0: nothing is known */
	/* that of most of them: bf16, f16, f32 or f64 */
	vn_dtype format;
	int      agree;                   /* of the votes */
	int      in[VN_N_DTYPES];         /* votes for each format */
	bool     heads;                   /* only logits and scores of experts voted */
	bool     widened;                 /* some of those that agree are stored in a wider format */
	char     others[VN_SHOWN_OTHERS]; /* the first tensors that do not agree: "logits (f32), ..." */
} vn_shown_precision;

/* Examines the first numbers of at most `most` tensors, spread over the model; 0: of all. Tensors
 * that cannot be read are passed over. */
vn_status vn_shown_format(vn_recording *r, int most, vn_shown_precision *s, vn_error *err);

/* Do the numbers deny that the run had this precision? Unknown words are not denied. Logits and
 * scores of experts alone in a finer format deny nothing. */
bool vn_shown_denies(const vn_shown_precision *s, const char *word);

/* Returns the word for a run that shows s: "bf16"; or "mixed-bf16" if some of its tensors need a
 * finer format. */
const char *vn_shown_word(const vn_shown_precision *s);

/* The fact of /run that says that nobody stated the precision: its value is "numbers". */
#define VN_PRECISION_FROM "precision_from"
/* Was the precision of this run stated by the engine or the user? */
bool vn_precision_declared(const vn_recording *r);
