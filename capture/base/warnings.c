/* warnings.c: see warnings.h. */
#include "capture/base/warnings.h"

#include "libref/base/say.h"
#include "libref/base/text.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE = 1024 };

static int  count;
static char all[8 * LINE]; /* "first; second" */

static void keep_warning(const char *text)
{
	vn_text_add(all, sizeof all, "%s%s", count++ ? "; " : "", text);
}

void vn_warn(const char *command, const char *format, ...)
{
	char    text[LINE];
	va_list args;

	va_start(args, format);
	vn_text_print(text, sizeof text, format, args);
	va_end(args);
	vn_say(stderr, "vernier %s: warning: %s\n", command, text);
	keep_warning(text);
}

void vn_warned(const char *format, ...)
{
	char    text[LINE];
	va_list args;

	va_start(args, format);
	vn_text_print(text, sizeof text, format, args);
	va_end(args);
	keep_warning(text);
}

void vn_warnings_begin(void)
{
	count = 0;
	*all = 0;
}

int vn_warnings_end(const char *command, bool strict, int status)
{
	if (!strict || status || !count)
		return status;
	fflush(stdout); /* keeps stdout before stderr */
	vn_say(stderr, "vernier %s: --strict: %d warning%s: %s\n", command, count, count == 1 ? "" : "s", all);
	return 1;
}

int vn_command_end(const char *command, vn_status st, const vn_error *err, bool strict, int status)
{
	if (st)
		vn_say(stderr, "vernier %s: %s\n", command, err->text);
	return vn_warnings_end(command, strict, st ? 2 : status);
}
