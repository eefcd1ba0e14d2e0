/* model.h: an opened model: its config, its plan, and its weights.
 *
 * A model comes from a source (source.h): a HuggingFace directory or a GGUF file. Files are mapped,
 * not read, so opening is quick; a weight's bytes stay valid until close. Opening checks everything
 * except the numbers: every weight that the plan needs exists, in the right shape, and no tensor is
 * left over.
 *
 * Threads  an opened model is read-only and may be shared.
 * Errors   nothing stays open after a failure.
 */
#pragma once

#include "libref/base/digest.h"
#include "libref/base/stats.h"
#include "libref/model/source.h"
#include "libref/plan/plan.h"

typedef struct vn_model vn_model;

vn_status vn_model_open(const char *path, vn_model **model, vn_error *err);
/* Same, in some of these ways.
 * MTP     with its multi-token-prediction head, as if the config had VN_MTP_KEY (specs/models.md)
 * MAPPED  experts stay on disk until they are needed: those that a file stores transposed have no
 *         data (NULL) until vn_model_need, and vn_model_table lets go of the memory of what it has
 *         read of them. For an engine that asks (vn_ref_options.need). */
enum { VN_MODEL_MTP = 1, VN_MODEL_MAPPED = 2 };
/* The way for a run with the head, or without. */
static inline unsigned vn_model_with(bool mtp)
{
	return mtp ? VN_MODEL_MTP : 0;
}
vn_status vn_model_open_as(const char *path, unsigned as, vn_model **model, vn_error *err);
/* Opens a model from a source, which belongs to the model from now on, also after a failure. path:
 * for messages and vn_model_path. */
vn_status vn_model_of_source(const char *path, vn_source *source, vn_model **model, vn_error *err);
void      vn_model_close(vn_model *m);

const vn_plan   *vn_model_plan(const vn_model *m);
/* (n_weights of the plan), views into mapped files, maybe unaligned. */
const vn_tensor *vn_model_weights(const vn_model *m);
/* Gives weight i of a vn_model data, if it has none (vn_ref_options.need). One thread at a time. */
void             vn_model_need(const void *model, int i);
/* The same for every expert of a node, which may have none. */
void             vn_model_need_experts(const vn_model *m, const vn_node *n);
/* Weight i with its data; *room: memory that it needed, which the caller frees, or NULL. */
vn_tensor        vn_model_read(const vn_model *m, int i, void **room);
/* Lets go of the memory of weight i, if it is an expert's that stays on disk. */
void             vn_model_release(const vn_model *m, int i);
const char      *vn_model_path(const vn_model *m);
/* The run that is judged was divided between so many ranks: sets the constant `ranks` of the
 * products that lead back to the residual stream. Before the model is shared. */
void             vn_model_divide(vn_model *m, int ranks);
/* Rounds weight i to a format of single numbers, as another file of the same model has it. Before
 * the model is shared. */
vn_status        vn_model_round(vn_model *m, int i, vn_dtype to, vn_error *err);
/* From now on, logits are computed of some tokens alone (libref/plan/vocab_part.h, whose
 * vn_plan_has_vocab_part must be true). Before the model is shared. */
void             vn_model_vocab_part(vn_model *m);
const char      *vn_model_family(const vn_model *m); /* "qwen2" */
/* config.json verbatim, or the equivalent of a GGUF file */
const char      *vn_model_config(const vn_model *m);
const char      *vn_model_provenance(const vn_model *m);         /* "trained", "synthetic", "unknown" */
const char      *vn_model_format(const vn_model *m);             /* "safetensors", "gguf Q4_K, Q6_K, F32" */
const char      *vn_model_weight_name(const vn_model *m, int i); /* of weight i of the plan, in the source */
/* Returns warning i, which does not stop the work; NULL after the last. */
const char      *vn_model_warning(const vn_model *m, int i);

/* One row of the table of weights in a recording. Making the table reads every number, which takes
 * as long as reading the file. It uses `threads` threads and gives the same digits for any number
 * of them. */
typedef struct vn_weight_row {
	const char *name; /* in the source, whose text it is */
	vn_dtype    dtype;
	vn_shape    shape;
	vn_digest   digest; /* of the bytes in the source */
	vn_stats    stats;
} vn_weight_row;

/* Fills rows: (n_weights of the plan). Beside other work: weight_table.h. */
void vn_model_table(const vn_model *m, int threads, vn_weight_row *rows);
/* The same without stats, in a fraction of the time. */
void vn_model_digests(const vn_model *m, int threads, vn_weight_row *rows);
