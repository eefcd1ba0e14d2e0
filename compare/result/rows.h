/* rows.h: the checkpoints of a document that is read from JSON.
 *
 * Owner    everything belongs to the vn_reading, until vn_reading_free.
 */
#pragma once

#include "compare/result/document.h"

/* What a document that was read knows of a checkpoint beside its vn_checkpoint. */
typedef struct vn_read_row {
	vn_tensor_facts about;
	vn_gemm         gemm[VN_MAX_GEMM];
	int             n_gemm;
	char           *replayed; /* words; NULL */
	const char     *fault_at; /* the name of replay.charged_to; NULL */
	json_t         *sides;    /* NULL: it was measured */
} vn_read_row;

typedef struct vn_reading {
	const char      *path;       /* for messages */
	vn_checkpoint   *checkpoint; /* (n) */
	vn_read_row     *row;        /* (n) */
	int              n;
	struct row_name *sorted; /* (n) by name, then step */
	void            *terms;  /* of the checks: checks.h */
	vn_rule        **rule;   /* (n_rules) */
	int              n_rules;
	vn_pooled_small *pooled; /* (n_pooled) one for each checkpoint judged with others */
	int              n_pooled;
	int             *origin;
} vn_reading;

/* Reads the next checkpoint. VN_ERR_FORMAT: a key is missing, of another kind, or out of range. */
vn_status vn_row_read(vn_reading *r, const json_t *row, vn_error *err);
/* Sorts the checkpoints. VN_ERR_FORMAT: two have one name. */
vn_status vn_reading_sort(vn_reading *r, vn_error *err);
/* Returns the checkpoint of this name and step; -1: none. After vn_reading_sort. */
int       vn_reading_find(const vn_reading *r, const char *name, int step);
void      vn_reading_free(vn_reading *r); /* NULL is allowed */
