/* report.h: the reports of a comparison, for people and for programs.
 *
 * A report is written from a document (compare/result/document.h) and reads nothing else.
 */
#pragma once

#include "compare/result/document.h"
#include "libref/base/say.h"

#include <stdio.h>

typedef struct vn_report_options {
	bool        colour; /* text: use terminal colours */
	bool        all;    /* text: a line for every checkpoint */
	/* json: the form that the HTML page embeds: 9 digits, the plan, and rows for most checkpoints
	 * of a long run (report_page.h) */
	bool        page;
	const char *path; /* html: of the page, which proposes commands for its folder; NULL: for this one */
} vn_report_options;

/* ---- the forms -------------------------------------------------------------- */

typedef vn_status vn_report(const vn_document *doc, const vn_report_options *o, FILE *out, vn_error *err);

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
 * `summary`, the refusals, and commands to type now (next). */
vn_status vn_report_refused(const char *why, const vn_lines *refusals, const vn_lines *next, FILE *out, vn_error *err);

extern const char *const vn_report_names;                     /* "text|json|...", for help */
const vn_report_form    *vn_report_at(int i);                 /* by its place in vn_report_names; NULL behind it */
const vn_report_form    *vn_report_by_name(const char *name); /* NULL if there is none */
/* The form of the files with this ending; NULL if there is none. */
const vn_report_form    *vn_report_meant(const char *ending);
vn_status vn_report_by_ending(const char *path, const vn_report_form **form, vn_error *err); /* as vn_output_ending */

#define VN_REPORT_WRITER(name, ...) vn_report vn_report_##name;
VN_REPORT_FORMS(VN_REPORT_WRITER, , )

/* ---- shared by the reports -------------------------------------------------- */

/* Writes a checkpoint in full, as lines of text: one of the document's divergences. brief: without
 * statistics, and without what the first screen says of it. */
void vn_report_full(const vn_document *doc, int divergence, bool brief, bool colour, FILE *out);

/* An HTML page without a script, up to its title, which the caller writes and closes. */
extern const char vn_page_plain[];

/* Terminal escapes, or "" without colour. */
#define VN_RED(colour)        ((colour) ? vn_say_colour[VN_SAY_RED] : "")
#define VN_GREEN(colour)      ((colour) ? vn_say_colour[VN_SAY_GREEN] : "")
#define VN_DIM(colour)        ((colour) ? vn_say_colour[VN_SAY_DIM] : "")
#define VN_BOLD(colour)       ((colour) ? vn_say_colour[VN_SAY_BOLD] : "")
#define VN_COLOUR_OFF(colour) ((colour) ? vn_say_colour[VN_SAY_PLAIN] : "")
