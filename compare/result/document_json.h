/* document_json.h: the longer parts of a document. The caller releases what is returned. */
#pragma once

#include "compare/profile/layout_match.h"
#include "compare/profile/profile.h"
#include "compare/result/document.h"

#define VN_AROUND_VALUES 8

/* One measured checkpoint in full. */
typedef struct vn_detail {
	int             checkpoint;
	const char     *op;
	int             n_around;                    /* neighbours along the last axis, including the worst element */
	int64_t         around_at;                   /* index of the first neighbour along that axis */
	double          around[2][VN_AROUND_VALUES]; /* [0] reference, [1] candidate */
	vn_stats        stats[2];
	int64_t         at[VN_MAX_RANK];   /* indices of the worst element */
	char            where[160];        /* "token 3, head 0, dim 17" */
	char            around_where[176]; /* "token 3, head 0, dim 14-21" */
	vn_profile      profile;           /* its lines begin with those of `like` */
	vn_layout_match like;
	const int      *input;   /* (n_input) indices of its inputs */
	int             n_input; /* -1 without a plan */
} vn_detail;

json_t *vn_json_name(const vn_checkpoint *p);
/* details_json.c: one divergence in full */
json_t *vn_json_detail(const vn_opened *opened, const vn_result *result, const vn_detail *x);

/* Fills divergences, divergences_left_out and detail of a document. */
vn_status vn_document_details(vn_document *doc, const vn_opened *o, const vn_result *r, int most, vn_error *err);
