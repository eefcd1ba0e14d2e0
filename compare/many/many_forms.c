/* many_forms.c: the table of forms for several candidates; see many_report.h. */
#include "compare/many/many_report.h"

#include <string.h>

vn_many_report *vn_many_form(const char *name)
{
	static const struct {
		const char     *name;
		vn_many_report *write;
	} form[] = {
		{ "text", vn_many_text },
		{ "json", vn_many_json },
		{ "markdown", vn_many_markdown },
		{ "html", vn_many_html },
	};
	for (size_t i = 0; i < sizeof form / sizeof *form; i++)
		if (strcmp(form[i].name, name) == 0)
			return form[i].write;
	return NULL;
}
