/* report.h: what a comparison found, for a person and for a program. */
#ifndef VN_COMPARE_REPORT_H
#define VN_COMPARE_REPORT_H

#include "compare/compare.h"
#include "compare/profile.h"

#include <stdio.h>

typedef struct vn_report_options {
	bool colour;       /* text: on a terminal */
	bool all;          /* text: every checkpoint has its line */
	const char *limits_chosen; /* why these limits: "--limits", "the candidate's precision f16" */
} vn_report_options;

vn_status vn_report_text(vn_comparison *c, const vn_report_options *o, FILE *out, vn_error *err);
/* Schema vernier-compare/1; see specs/compare.md. */
vn_status vn_report_json(vn_comparison *c, const vn_report_options *o, FILE *out, vn_error *err);

/* ---- shared by the reports -------------------------------------------------- */

#define VN_DETAIL_FIRST 8

/* The numbers behind one measured checkpoint. */
typedef struct vn_detail {
	int      n_first;
	double   first[2][VN_DETAIL_FIRST]; /* [0] reference, [1] candidate */
	vn_stats stats[2];
	int64_t  at[VN_MAX_RANK];           /* indices of the worst element */
	char     where[160];                /* "token 3, head 0, dim 17" */
	vn_profile profile;
} vn_detail;

/* vn_detail_free afterwards, whatever happened. */
vn_status vn_detail_of(vn_comparison *c, const vn_checkpoint *p, vn_detail *d, vn_error *err);
void      vn_detail_free(vn_detail *d);

/* The name with its step where that is not 0 ("step.2/layer3.q_rope"); text of VN_LABEL bytes. */
#define VN_LABEL (VN_NAME_MAX + 24)
const char *vn_label(const vn_checkpoint *p, char *text);
/* The op of a checkpoint, from the file or the plan; "" when neither says. */
const char *vn_op_of(const vn_comparison *c, const vn_checkpoint *p);
const char *vn_point_of(const vn_checkpoint *p);
/* The two entries: the reference's, or the candidate's when that is all there is. */
const vn_entry *vn_entry_of(const vn_comparison *c, const vn_checkpoint *p);

#endif
