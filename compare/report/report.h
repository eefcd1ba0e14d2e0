/* report.h: what a comparison found, for people and for programs.
 *
 * A report is written from a vn_comparison and its vn_story: the details of what
 * failed, read from the files once, however many reports there are.
 */
#ifndef VN_COMPARE_REPORT_H
#define VN_COMPARE_REPORT_H

#include "compare/comparison/comparison.h"
#include "compare/profile/profile.h"
#include "compare/profile/layout_match.h"

#include <stdio.h>

typedef struct vn_report_options {
	bool colour;       /* text: on a terminal */
	bool all;          /* text: every checkpoint has its line */
	bool page;         /* json: as a page needs it, 9 digits and what is healthy in short (specs/compare.md) */
	const char *limits_chosen; /* why these limits: "--limits", "the candidate's precision f16" */
} vn_report_options;

#define VN_AROUND_VALUES 8

/* One measured checkpoint in full. */
typedef struct vn_report_detail {
	int        point;
	int        n_around;                  /* neighbours along the last axis, the worst element among them */
	int64_t    around_at;                 /* index of the first along that axis */
	double     around[2][VN_AROUND_VALUES]; /* [0] reference, [1] candidate */
	vn_stats   stats[2];
	int64_t    at[VN_MAX_RANK];           /* indices of the worst element */
	char       where[160];                /* "token 3, head 0, dim 17" */
	char       around_where[176];         /* "token 3, head 0, dim 14-21" */
	vn_profile profile;                   /* its words with those of the resemblance before them */
	vn_layout_match like;
	int       *input, n_input;            /* checkpoints it was computed from; -1: no plan tells */
} vn_report_detail;

/* The first divergence, then the other origins, then whatever else is outside, in
 * execution order. The rest of these is read only while it is not too much. */
typedef struct vn_story {
	vn_report_detail *told;
	int      n;
	int      left_out; /* outside as well, without details */
} vn_story;

/* At most so many in all. vn_story_free afterwards, whatever happened. */
vn_status vn_story_of(vn_comparison *c, int most, vn_story *s, vn_error *err);
void      vn_story_free(vn_story *s);
/* In full, where that is told; NULL. */
const vn_report_detail *vn_story_find(const vn_story *s, int point);

/* ---- the forms -------------------------------------------------------------- */

typedef vn_status vn_report(const vn_comparison *c, const vn_story *s, const vn_report_options *o, FILE *out, vn_error *err);

typedef struct vn_report_form {
	const char *name, *suffix; /* "json", ".json"; suffix NULL: of no name in particular */
	int         tells;         /* so many checkpoints in full at most */
	vn_report  *write;
} vn_report_form;

extern const char *const vn_report_names; /* "text|json|...", for help */
const vn_report_form *vn_report_by_name(const char *name);  /* NULL: none */
const vn_report_form *vn_report_by_suffix(const char *path); /* text where nothing else fits */

vn_report vn_report_text;
vn_report vn_report_json; /* schema vernier-compare/1: specs/compare.md */
vn_report vn_report_junit;
vn_report vn_report_markdown; /* fits a comment on GitHub */
vn_report vn_report_html; /* one page that needs nothing else */

/* ---- shared by the reports -------------------------------------------------- */

/* One checkpoint in lines of text. */
void vn_report_full(const vn_comparison *c, const vn_report_detail *x, bool colour, FILE *out);

/* For a terminal, where colour is. */
#define VN_RED(colour)   ((colour) ? "\033[31m" : "")
#define VN_GREEN(colour) ((colour) ? "\033[32m" : "")
#define VN_DIM(colour)   ((colour) ? "\033[2m" : "")
#define VN_BOLD(colour)  ((colour) ? "\033[1m" : "")
#define VN_PLAIN(colour) ((colour) ? "\033[0m" : "")

/* The op of a checkpoint, from the file or the plan; "" when neither says. */
const char *vn_op_of(const vn_comparison *c, const vn_checkpoint *p);
const char *vn_point_of(const vn_checkpoint *p);
/* The two entries: the reference's, or the candidate's when that is all there is. */
const vn_entry *vn_entry_of(const vn_comparison *c, const vn_checkpoint *p);
/* nmse in units of the floor's, of small tensors of steps the floor of those it is judged with; false where there is no such unit. */
bool vn_ratio_of(const vn_comparison *c, const vn_checkpoint *p, double *ratio);
/* Where it first goes wrong: numbers apart, or else a checkpoint that cannot be judged; -1. */
int  vn_first_failure(const vn_comparison *c);

#endif
