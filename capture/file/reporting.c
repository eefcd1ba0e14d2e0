/* reporting.c: see reporting.h. */
#include "capture/file/reporting.h"
#include "capture/file/output.h"

#include <string.h>

int vn_reporting_choose(const char *command, vn_reporting *k)
{
	vn_error err;
	int      which = k->format == VN_FORM_JSON ? 0 : -1;

	k->path = k->path && strcmp(k->path, "-") == 0 ? NULL : k->path;
	if (k->format == VN_FORM_UNSAID && vn_output_ending(k->path, "json", &which, &err))
		return vn_complain(command, "%s", err.text);
	k->json = which == 0;
	return 0;
}
