/* many_forms.c: looks up the forms for several candidates; see many_report.h. */
#include "compare/many/many_report.h"

#include <string.h>

#define NAME(name, keeps) "|" #name
const char *const vn_many_names = &VN_REPORT_FORMS(VN_MANY_ROW, NAME, VN_MANY_NONE_OF)[1];

const vn_many_form *vn_many_by_name(const char *name)
{
#define ROW(name, keeps) { #name, vn_many_##name, keeps },
	static const vn_many_form form[] = { VN_REPORT_FORMS(VN_MANY_ROW, ROW, VN_MANY_NONE_OF) };

	for (size_t i = 0; i < sizeof form / sizeof *form; i++)
		if (strcmp(form[i].name, name) == 0)
			return &form[i];
	return NULL;
}
