/* many_forms.h: the forms of a report on several candidates. */
#ifndef VN_COMPARE_MANY_FORMS_H
#define VN_COMPARE_MANY_FORMS_H

#include "compare/many/many_report.h"

vn_many_report vn_many_text;
vn_many_report vn_many_markdown; /* fits a comment on GitHub */
vn_many_report vn_many_html;     /* one page that loads no other file; the page of a vote has no script */
/* schema vernier-compare-many/2: specs/compare.md. Needs m->reports */
vn_many_report vn_many_json;

/* Returns the form of this name (one of vn_report_names), or NULL if it does not exist for several
 * candidates. */
vn_many_report *vn_many_form(const char *name);

#endif
