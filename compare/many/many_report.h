/* many_report.h: several candidates in one report: a column each. */
#ifndef VN_COMPARE_MANY_REPORT_H
#define VN_COMPARE_MANY_REPORT_H

#include "compare/many/many.h"

typedef struct vn_many_options {
	bool colour, all; /* as in vn_report_options */
} vn_many_options;

typedef vn_status vn_many_report(const vn_many *m, const vn_many_options *o, FILE *out, vn_error *err);

vn_many_report vn_many_text;
vn_many_report vn_many_markdown; /* fits a comment on GitHub */
vn_many_report vn_many_html;     /* one page that needs nothing else, and no script */
vn_many_report vn_many_json;     /* schema vernier-compare-many/1: specs/compare.md. m->reports is needed */

/* The form of that name among those of vn_report_names; NULL: several candidates have none. */
vn_many_report *vn_many_form(const char *name);

/* ---- shared by the forms ------------------------------------------------------ */

/* "! 1.2e-03 12x": nmse, and in floors where there is one; or the status where nothing was measured; "-" without a cell. */
enum { VN_MANY_CELL = 40 };
const char *vn_many_say_cell(const vn_many_cell *x, char text[VN_MANY_CELL]);
/* Who is the odd one out: a letter, "all", "A, C", or "". */
const char *vn_many_say_odd(const vn_many *m, int row, char text[VN_MANY_LETTERS]);
/* "OUTSIDE limits: 3 of 33 checkpoints.", or why it was not compared. To be shown clean. */
enum { VN_MANY_VERDICT = 1600 };
const char *vn_many_say_verdict(const vn_many_candidate *x, char text[VN_MANY_VERDICT]);
/* The verdict on all of them, "OUTSIDE limits", and on whom: "2 of 3 candidates outside (A, C), 1 not compared (B)". */
const char *vn_many_say_all(const vn_many *m);
enum { VN_MANY_WHO = 200 };
const char *vn_many_say_who(const vn_many *m, char text[VN_MANY_WHO]);
/* The page up to its title, which the caller writes and ends. */
extern const char vn_many_page[];
/* What the cells hold, in a line. */
const char *vn_many_legend(const vn_many *m);

#endif
