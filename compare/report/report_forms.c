/* report_forms.c: the table of report formats; see report.h. */
#include "compare/report/report.h"

#include "capture/file/output.h"

#include <string.h>

/* In the order of the endings below. */
static const vn_report_form forms[] = {
	{ "text", 9, vn_report_text },         { "json", 32, vn_report_json }, { "junit", 32, vn_report_junit },
	{ "markdown", 9, vn_report_markdown }, { "html", 32, vn_report_html }, { "csv", 0, vn_report_csv },
};
const char *const vn_report_names = "text|json|junit|markdown|html|csv";

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
	const vn_status st = vn_output_ending(path, "json|xml|md|html|csv", &which, err);

	*form = &forms[which + 1];
	return st;
}
