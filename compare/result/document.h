/* document.h: the result of a comparison as a document, from which every report is written.
 *
 * A document has the members of fields.def, each a value of JSON under its own name, and the
 * checkpoints. It is filled once, when the comparison has ended; afterwards nobody changes it. What
 * it holds is all that a report shows.
 *
 * Reads    everything of a comparison, after vn_compare_end; numbers of the recordings, for details
 * Fills    a vn_document
 * Owner    checkpoints, origins and pools are the comparison's, which must outlive the document;
 *          all else is the document's, until vn_document_finish. What functions return is borrowed.
 */
#pragma once

#include "compare/comparison/checkpoint.h"
#include "compare/text/json.h"
#include "libref/plan/gemm.h"

/* specs/compare.md */
#define VN_DOCUMENT_SCHEMA "vernier-compare/3"
#define VN_DOCUMENT_BEFORE "vernier-compare/2"

typedef struct vn_document {
#define FIELD(key, kind, since, part) json_t *key; /* NULL: the report has none */
#include "compare/result/fields.def"
#undef FIELD
	const vn_checkpoint   *checkpoint; /* (n) */
	int                    n, n_fails;
	int                    first;      /* the first divergence, else the first that cannot be judged; -1 */
	int                    divergence; /* the first divergence; -1 */
	const int             *origin;     /* (n_origins) */
	int                    n_origins;
	const vn_pooled_small *pooled_small; /* for pooled_small of a checkpoint */
	int                   *detail;       /* (of divergences) their checkpoints */
	bool                   within;
	vn_verified            verified[2]; /* digests that were checked, of the reference and the candidate */
	const vn_opened       *opened;      /* NULL: it was read */
	const vn_result       *result;      /* likewise */
	struct vn_reading     *read;        /* rows.h; NULL: of a comparison */
} vn_document;

/* Makes the document of a comparison. most: the most checkpoints with details (divergences): the
 * first divergence, then the other origins, then the other failures, in execution order; the
 * other failures are read only up to a fixed number of elements. chosen: how the limits were
 * chosen: "--limits", "the candidate's precision f16". Call vn_document_finish afterwards, also
 * after a failure. */
vn_status vn_document_of(const vn_opened *o, const vn_result *r, int most, const char *chosen, vn_document *doc,
                         vn_error *err);
/* Reads the document of a JSON report, of this schema or of the one before. VN_ERR_FORMAT: it is
 * another text, a key is missing, or its checkpoints contradict its verdict. Call
 * vn_document_finish afterwards, also after a failure. */
vn_status vn_document_read(const char *path, vn_document *doc, vn_error *err);
void      vn_document_finish(vn_document *doc); /* doc may be zeroed */

/* ---- members ----------------------------------------------------------------------------- */

/* Returns a text; "" of null. */
const char *vn_document_text(const json_t *j);
const char *vn_document_member(const json_t *object, const char *key);
/* Of LINES: how many, and one of them. */
int         vn_document_lines(const json_t *lines);
const char *vn_document_line(const json_t *lines, int i);
/* Returns a number of an object that has an object not_finite (compare/text/json.h). */
double      vn_document_number(const json_t *object, const char *key);

/* Returns the file of limits; "none" with --bitwise. */
const char *vn_document_limits(const vn_document *doc);

/* ---- checkpoints --------------------------------------------------------------------------- */

/* A tensor: op "" if neither the recording nor its plan names it. Of the reference, or of the
 * candidate if the reference has none. */
typedef struct vn_tensor_facts {
	const char *op, *axes;
	vn_shape    shape;
} vn_tensor_facts;

vn_tensor_facts vn_document_about(const vn_document *doc, const vn_checkpoint *p);
/* Sets *ratio to the nmse divided by the floor's. Small tensors of decoded steps use the floor of
 * their pool. Returns false without a floor. */
bool            vn_ratio_of(const vn_document *doc, const vn_checkpoint *p, double *ratio);

/* As vn_replay_say_result; as vn_replayed_products. */
const char *vn_document_replayed(const vn_document *doc, const vn_checkpoint *p, char text[VN_WORDS]);
int         vn_document_products(const vn_document *doc, const vn_checkpoint *p, vn_gemm g[VN_MAX_GEMM]);
/* Of a checkpoint that was not measured: as vn_unmeasured_sides. A new reference. */
json_t     *vn_document_sides(const vn_document *doc, const vn_checkpoint *p);

/* Returns its details, their place among divergences, or its explanation; NULL, -1: it has none. */
const json_t *vn_document_detail(const vn_document *doc, int point);
int           vn_document_detail_at(const vn_document *doc, int point);
const json_t *vn_document_explanation(const vn_document *doc, int point);
/* Returns the checkpoint of this name, as JSON has it: "step.2/layer3.q_rope"; -1: none. */
int           vn_document_find(const vn_document *doc, const char *name);

/* Returns the checkpoint as JSON, a new reference. all: with what only readers of JSON need. */
json_t *vn_document_row(const vn_document *doc, const vn_checkpoint *p, bool all);
