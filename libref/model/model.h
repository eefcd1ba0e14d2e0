/* model.h: an opened model: its config, its plan, and its weights in place.
 *
 * A model comes from a source (source.h): a HuggingFace directory or a GGUF
 * file. Files are mapped, not read: opening is quick, and a weight's bytes stay
 * valid until close. Opening checks everything there is to check without reading
 * numbers: every weight the plan needs is there, in the shape it needs, and no
 * tensor is left over.
 *
 * Threads  an opened model is read-only and may be shared.
 * Errors   nothing is left open.
 */
#ifndef VN_LIBREF_MODEL_MODEL_H
#define VN_LIBREF_MODEL_MODEL_H

#include "libref/base/digest.h"
#include "libref/base/stats.h"
#include "libref/model/source.h"
#include "libref/plan/plan.h"

typedef struct vn_model vn_model;

vn_status vn_model_open(const char *path, vn_model **model, vn_error *err);
/* The same of an opened source, which belongs to the model from here on, in
 * failure too. path is for messages and vn_model_path. */
vn_status vn_model_of_source(const char *path, vn_source *source, vn_model **model, vn_error *err);
void      vn_model_close(vn_model *m);

const vn_plan   *vn_model_plan(const vn_model *m);
/* (n_weights of the plan), each a view into a mapped file, maybe unaligned. */
const vn_tensor *vn_model_weights(const vn_model *m);
const char      *vn_model_path(const vn_model *m);
const char      *vn_model_family(const vn_model *m);      /* "qwen2" */
const char      *vn_model_config(const vn_model *m);      /* config.json, verbatim, or what a GGUF file comes to */
const char      *vn_model_provenance(const vn_model *m);  /* "trained", "synthetic", "unknown" */
const char      *vn_model_format(const vn_model *m);      /* "safetensors", "gguf Q4_K, Q6_K, F32" */
/* Things worth a line to the person that do not stop the work; NULL after the last. */
const char      *vn_model_warning(const vn_model *m, int i);

/* One row of the table of weights that goes into a recording. Reading every
 * number takes as long as reading the file, so it is a call of its own; it
 * uses `threads` threads and gives the same digits for any number of them. */
typedef struct vn_weight_row {
	char      name[VN_NAME_MAX]; /* as the source has it */
	vn_dtype  dtype;
	vn_shape  shape;
	vn_digest digest; /* of the bytes as the source has them */
	vn_stats  stats;
} vn_weight_row;

/* rows: (n_weights of the plan), the caller's. */
void vn_model_table(const vn_model *m, int threads, vn_weight_row *rows);

#endif
