/* report_forms.c: the table of report formats; see report.h. */
#include "compare/report/report.h"

#include "capture/file/output.h"

#include <string.h>

/* The formats: name, most checkpoints shown in full, file ending. A file with any other ending is
 * text. */
#define BY_ENDING(FORM) \
	FORM(json, 32, "json") FORM(junit, 32, "xml") FORM(markdown, 9, "md") FORM(html, 32, "html") FORM(csv, 0, "csv")

#define ROW(name, tells, ending) { #name, tells, vn_report_##name },
static const vn_report_form forms[] = { { "text", 9, vn_report_text }, BY_ENDING(ROW) };

#define NAME(name, tells, ending) "|" #name
const char *const vn_report_names = "text" BY_ENDING(NAME);

#define ENDING(name, tells, ending) "|" ending
static const char *const endings = &BY_ENDING(ENDING)[1];

enum { N_FORMS = sizeof forms / sizeof *forms };

const vn_report_form *vn_report_by_name(const char *name)
{
	for (int i = 0; i < N_FORMS; i++)
		if (strcmp(forms[i].name, name) == 0)
			return &forms[i];
	return NULL;
}

vn_status vn_report_by_ending(const char *path, const vn_report_form **form, vn_error *err)
{
	int             which;
	const vn_status st = vn_output_ending(path, endings, &which, err);

	*form = &forms[which + 1];
	return st;
}
