/* many_report.h: what the reports on several candidates, one column each, have in common. */
#pragma once

#include "compare/many/many.h"
#include "compare/report/report.h"

typedef struct vn_many_options {
	bool        colour, all; /* as in vn_report_options */
	const char *path;        /* of the report; NULL: stdout */
} vn_many_options;

typedef vn_status vn_many_report(const vn_many *m, const vn_many_options *o, FILE *out, vn_error *err);

/* A row of VN_REPORT_FORMS for several candidates. */
typedef struct vn_many_form {
	const char     *name;
	vn_many_report *write;
	unsigned        keeps; /* vn_many_keep: what it needs in m->reports */
} vn_many_form;

#define VN_MANY_WRITER(name, keeps) vn_many_report vn_many_##name;
#define VN_MANY_NONE_OF(name, keeps)
#define VN_MANY_ROW(name, ending, tells, many, keeps, ...) many(name, keeps)
VN_REPORT_FORMS(VN_MANY_ROW, VN_MANY_WRITER, VN_MANY_NONE_OF)

/* Returns the form of this name (one of vn_report_names), or NULL if it does not exist for several
 * candidates. */
const vn_many_form      *vn_many_by_name(const char *name);
extern const char *const vn_many_names; /* "text|json|...", for messages */

/* "within", "outside", "trouble": the words of an exit status in JSON */
extern const char *const vn_many_verdicts[3];

/* Writes a cell: "! 1.2e-03 12x" (nmse, and in floors if there is one), the status if nothing was
 * measured, or "-" without a cell. Returns text. */
enum { VN_MANY_CELL = 40 };
const char *vn_many_say_cell(const vn_many_cell *x, char text[VN_MANY_CELL]);
/* Writes which candidates fail at a row: the letter of the odd one out, "A, C", "all", or "".
 * Returns text. */
enum { VN_MANY_LETTERS = 3 * VN_MANY_MOST };
const char *vn_many_say_odd(const vn_many *m, int row, char text[VN_MANY_LETTERS]);
/* Writes "OUTSIDE limits: 3 of 33 checkpoints.", or why it was not compared. Not escaped: clean it
 * before display. */
enum { VN_MANY_VERDICT = 1600 };
const char *vn_many_say_verdict(const vn_many_candidate *x, char text[VN_MANY_VERDICT]);
/* Return the verdict on all candidates, such as "OUTSIDE limits"; and which candidates it is about:
 * "2 of 3 candidates outside (A, C), 1 not compared (B)". */
const char *vn_many_say_all(const vn_many *m);
enum { VN_MANY_WHO = 200 };
const char *vn_many_say_who(const vn_many *m, char text[VN_MANY_WHO]);
/* Returns one line that explains the cells. */
const char *vn_many_legend(const vn_many *m);
