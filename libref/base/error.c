/* error.c: see error.h. What is not printable is shown as a code: names come from files. */
#include "libref/base/error.h"

#include "libref/base/text.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

vn_status vn_fail(vn_error *err, vn_status status, const char *format, ...)
{
	const bool trouble = status == VN_ERR_NOMEM || (status == VN_ERR_IO && vn_trouble_is(errno));
	vn_error   own;

	if (trouble && !err)
		err = &own;
	if (err) {
		va_list args;
		va_start(args, format);
		vn_text_print(err->text, sizeof err->text, format, args);
		va_end(args);
	}
	if (trouble)
		vn_trouble_note(err->text);
	return status;
}

vn_status vn_context(vn_error *err, vn_status status, const char *format, ...)
{
	if (err) {
		char    text[2 * VN_ERROR_MAX];
		va_list args;
		va_start(args, format);
		int n = vsnprintf(text, VN_ERROR_MAX, format, args);
		va_end(args);
		if (n < 0 || n >= VN_ERROR_MAX)
			n = VN_ERROR_MAX - 1;
		snprintf(text + n, sizeof text - (size_t)n, ": %s", err->text);
		snprintf(err->text, sizeof err->text, "%.*s", VN_ERROR_MAX - 1, text);
		vn_text_clean(err->text, sizeof err->text);
	}
	return status;
}
