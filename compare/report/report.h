/* report.h: the reports of a comparison, for people and for programs.
 *
 * A report is written from a vn_comparison and its vn_story. The story holds the details of the
 * checkpoints that failed; it is read from the files once for all reports.
 *
 * Reads   everything of a comparison, after vn_compare_end
 * Fills   a vn_story
 */
#ifndef VN_COMPARE_REPORT_H
#define VN_COMPARE_REPORT_H

#include "compare/comparison/comparison.h"
#include "compare/profile/profile.h"
#include "compare/profile/layout_match.h"
#include "libref/base/say.h"

#include <stdio.h>

typedef struct vn_report_options {
	bool        colour; /* text: use terminal colours */
	bool        all;    /* text: a line for every checkpoint */
	/* json: the form that the HTML page embeds: 9 digits, the plan, and rows for most checkpoints
	 * of a long run (report_page.h) */
	bool        page;
	const char *limits_chosen; /* how the limits were chosen: "--limits", "the candidate's precision f16" */
} vn_report_options;

#define VN_AROUND_VALUES 8

/* One measured checkpoint in full. */
typedef struct vn_report_detail {
	int             checkpoint;
	int             n_around;                    /* neighbours along the last axis, including the worst element */
	int64_t         around_at;                   /* index of the first neighbour along that axis */
	double          around[2][VN_AROUND_VALUES]; /* [0] reference, [1] candidate */
	vn_stats        stats[2];
	int64_t         at[VN_MAX_RANK];   /* indices of the worst element */
	char            where[160];        /* "token 3, head 0, dim 17" */
	char            around_where[176]; /* "token 3, head 0, dim 14-21" */
	vn_profile      profile;           /* its lines begin with those of `like` */
	vn_layout_match like;
	int            *input, n_input; /* indices of its inputs; n_input is -1 without a plan */
} vn_report_detail;

/* The details of the first divergence, then of the other origins, then of the other failures, in
 * execution order. The other failures are read only up to a fixed number of elements. */
typedef struct vn_story {
	vn_report_detail *detail;
	int               n;
	int               left_out; /* failures without details */
} vn_story;

/* Reads the details of at most `most` checkpoints. Call vn_story_free afterwards, also after a
 * failure. */
vn_status               vn_story_of(vn_comparison *c, int most, vn_story *s, vn_error *err);
void                    vn_story_free(vn_story *s);
/* The details of a checkpoint, or NULL if the story has none. */
const vn_report_detail *vn_story_find(const vn_story *s, int point);

/* ---- the forms -------------------------------------------------------------- */

typedef vn_status vn_report(const vn_comparison *c, const vn_story *s, const vn_report_options *o, FILE *out,
                            vn_error *err);

/* Each form once: all else that lists forms is made from this table, in its order.
 *   name    as --format takes it. vn_report_NAME writes it
 *   ending  of a file with this form; every other is text
 *   tells   the most checkpoints shown in full
 *   many    MANY: vn_many_NAME writes one of several candidates (compare/many/many_report.h); else
 *           ONE
 *   keeps   which report of each candidate vn_many_NAME needs (vn_many_keep)
 *   about   what help says of the form, and of its ending */
/* clang-format off */
#define VN_REPORT_FORMS(FORM, MANY, ONE) \
	FORM(text, "", 9, MANY, 0, "", "") \
	FORM(json, "json", 32, MANY, VN_MANY_KEEP_JSON, "", ".json, ") \
	FORM(junit, "xml", 32, ONE, 0, "junit is JUnit XML, one testcase per checkpoint; ", ".xml for JUnit, ") \
	FORM(markdown, "md", 9, MANY, 0, "markdown fits a comment on a pull request; ", ".md for Markdown, ") \
	FORM(html, "html", 32, MANY, VN_MANY_KEEP_PAGES, "html is one page that needs no network; ", ".html, ") \
	FORM(csv, "csv", 0, ONE, 0, "csv has one row per checkpoint", ".csv")
/* clang-format on */

typedef struct vn_report_form {
	const char *name, *ending;
	int         tells;
	vn_report  *write;
} vn_report_form;

/* Writes the JSON report of a comparison that was refused: schema, the verdict `trouble`, why as
 * `summary`, the refusals, and commands to type now. */
vn_status vn_report_refused(const vn_comparison *c, const char *why, FILE *out, vn_error *err);

extern const char *const vn_report_names;                     /* "text|json|...", for help */
const vn_report_form    *vn_report_by_name(const char *name); /* NULL if there is none */
/* The form of the files with this ending; NULL if there is none. */
const vn_report_form    *vn_report_meant(const char *ending);
vn_status vn_report_by_ending(const char *path, const vn_report_form **form, vn_error *err); /* as vn_output_ending */

#define VN_REPORT_WRITER(name, ...) vn_report vn_report_##name;
VN_REPORT_FORMS(VN_REPORT_WRITER, , )

/* ---- shared by the reports -------------------------------------------------- */

/* Writes one checkpoint in full, as lines of text. */
void vn_report_full(const vn_comparison *c, const vn_report_detail *x, bool colour, FILE *out);

/* Terminal escapes, or "" without colour. */
#define VN_RED(colour)        ((colour) ? vn_say_colour[VN_SAY_RED] : "")
#define VN_GREEN(colour)      ((colour) ? vn_say_colour[VN_SAY_GREEN] : "")
#define VN_DIM(colour)        ((colour) ? vn_say_colour[VN_SAY_DIM] : "")
#define VN_BOLD(colour)       ((colour) ? vn_say_colour[VN_SAY_BOLD] : "")
#define VN_COLOUR_OFF(colour) ((colour) ? vn_say_colour[VN_SAY_PLAIN] : "")

/* Returns the op of a checkpoint, from the recording or its plan; "" if neither names it. */
const char     *vn_op_of(const vn_comparison *c, const vn_checkpoint *p);
/* Returns the entry of the reference, or of the candidate if the reference has none. */
const vn_entry *vn_entry_of(const vn_comparison *c, const vn_checkpoint *p);
/* Sets *ratio to the nmse divided by the floor's. Small tensors of decoded steps use the floor of
 * their pool. Returns false without a floor. */
bool            vn_ratio_of(const vn_comparison *c, const vn_checkpoint *p, double *ratio);
/* Returns the first divergence, else the first checkpoint that cannot be judged, else -1. */
int             vn_first_failure(const vn_comparison *c);

#endif
