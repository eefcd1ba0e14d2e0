/* lines.c: see lines.h. */
#include "compare/text/lines.h"

#include "libref/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vn_lines_add(vn_lines *l, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	vn_text_clean(text);
	char **more = realloc(l->line, (size_t)(l->n + 1) * sizeof *more);
	if (!more)
		return;
	l->line = more;
	if ((more[l->n] = strdup(text)))
		l->n++;
}

void vn_lines_first(vn_lines *l, const char *line)
{
	const int before = l->n;
	vn_lines_add(l, "%s", line);
	if (l->n == before)
		return;
	char *last = l->line[before];
	memmove(l->line + 1, l->line, (size_t)before * sizeof *l->line);
	l->line[0] = last;
}

void vn_lines_free(vn_lines *l)
{
	for (int i = 0; i < l->n; i++)
		free(l->line[i]);
	free(l->line);
	*l = (vn_lines) { 0 };
}
