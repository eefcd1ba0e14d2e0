/* report_forms.c: the table of report formats; see report.h. */
#include "compare/report/report.h"

#include <string.h>

static const vn_report_form forms[] = {
	{ "text", NULL, 9, vn_report_text },
	{ "json", ".json", 32, vn_report_json },
	{ "junit", ".xml", 32, vn_report_junit },
	{ "markdown", ".md", 9, vn_report_markdown },
	{ "html", ".html", 32, vn_report_html },
	{ "csv", ".csv", 0, vn_report_csv },
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

static bool ends_in(const char *text, const char *end)
{
	const size_t n = strlen(text), k = strlen(end);
	return n >= k && strcmp(text + n - k, end) == 0;
}

const vn_report_form *vn_report_by_suffix(const char *path)
{
	for (int i = 0; i < N_FORMS; i++)
		if (forms[i].suffix && ends_in(path, forms[i].suffix))
			return &forms[i];
	return &forms[0];
}
