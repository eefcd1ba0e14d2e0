/* report_forms.c: looks up the forms of reports; see report.h. */
#include "compare/report/report.h"

#include "capture/file/output.h"

#include <string.h>

#define ROW(name, ending, tells, ...) { #name, ending, tells, vn_report_##name },
static const vn_report_form forms[] = { VN_REPORT_FORMS(ROW, , ) };

#define NAME(name, ...) "|" #name
const char *const vn_report_names = &VN_REPORT_FORMS(NAME, , )[1];

#define ENDING(name, ending, ...) "|" ending
static const char *const endings = &VN_REPORT_FORMS(ENDING, , )[2]; /* without that of text */

enum { N_FORMS = sizeof forms / sizeof *forms };

const vn_report_form *vn_report_at(int i)
{
	return i < N_FORMS ? &forms[i] : NULL;
}

const vn_report_form *vn_report_by_name(const char *name)
{
	for (int i = 0; i < N_FORMS; i++)
		if (strcmp(forms[i].name, name) == 0)
			return &forms[i];
	return NULL;
}

const vn_report_form *vn_report_meant(const char *ending)
{
	for (int i = 1; i < N_FORMS; i++)
		if (strcmp(forms[i].ending, ending) == 0)
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
