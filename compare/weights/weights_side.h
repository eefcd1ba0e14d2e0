/* weights_side.h: opens one side of a comparison of weights: a recording, or the files of a model
 * of any family (a directory with config.json and *.safetensors, or a GGUF file).
 *
 * Owner   side points into what was opened; vn_opened_weights_close frees everything.
 * Errors  one line that names the file; nothing stays open.
 */
#pragma once

#include "capture/recording/recording.h"
#include "compare/text/lines.h"
#include "compare/weights/weights.h"

typedef struct vn_opened_weights {
	vn_weight_side side;
	vn_recording  *recording; /* NULL: files of a model */
	vn_source     *source;
	vn_weight_row *rows; /* (n), made from source */
	vn_tensor     *numbers;
	vn_plan       *plan;
} vn_opened_weights;

/* Fills *side with the table of weights of a recording (n <= 0: it has none). Returns the plan that
 * was made for it, which the caller destroys; NULL: none. */
vn_plan *vn_weight_side_of(const vn_recording *r, vn_weight_side *side);

/* Tensors in unsupported formats are left out, with a line in notes. */
vn_status vn_opened_weights_open(const char *path, int threads, vn_opened_weights *w, vn_lines *notes, vn_error *err);
void      vn_opened_weights_close(vn_opened_weights *w); /* safe on a zeroed one */
