/* lines.c: see lines.h. */
#include "compare/text/lines.h"

#include "libref/base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_CHARS = 1024 };

static void append_line(vn_lines *l, const char *text)
{
	char **more = realloc(l->line, (size_t)(l->n + 1) * sizeof *more);
	if (!more)
		return;
	l->line = more;
	if ((more[l->n] = strdup(text)))
		l->n++;
}

void vn_lines_add(vn_lines *l, const char *format, ...)
{
	char    text[LINE_MAX_CHARS];
	va_list args;
	va_start(args, format);
	vn_text_print(text, sizeof text, format, args);
	va_end(args);
	append_line(l, text);
}

void vn_lines_refuse(vn_lines *l, const char *allow, const char *format, ...)
{
	char    text[LINE_MAX_CHARS];
	va_list args;
	va_start(args, format);
	vn_text_print(text, sizeof text, format, args);
	va_end(args);
	vn_lines_add(l, "%.*s (--allow %s)", LINE_MAX_CHARS - 64, text, allow);
}

void vn_lines_print_refusals(const vn_lines *l, const char *who, const char *list, FILE *out)
{
	enum { MOST = 12 };

	for (int i = 0; i < l->n && (i < MOST || l->n == MOST + 1); i++)
		fprintf(out, "refused: %s%s\n", who, l->line[i]);
	if (l->n > MOST + 1)
		fprintf(out, "refused: %sand for %d more reasons%s%s\n", who, l->n - MOST, *list ? "; " : "", list);
}

bool vn_lines_refused(const vn_lines *l, const char *allow)
{
	char      end[64];
	const int n = snprintf(end, sizeof end, " (--allow %s)", allow);

	for (int i = 0; i < l->n; i++) {
		const size_t length = strlen(l->line[i]);
		if (length >= (size_t)n && strcmp(l->line[i] + length - (size_t)n, end) == 0)
			return true;
	}
	return false;
}

/* How many times `text` was added, if `line` is text followed by its count and unit; 0 otherwise. */
static int times_in_line(const char *line, const char *text, size_t n, const char *unit, bool owned)
{
	char word[32];
	int  times, end = 0;
	if (strncmp(line, text, n) != 0)
		return 0;
	line += n;
	if (sscanf(line, " (%d %31[a-z])%n", &times, word, &end) == 2 && end && !line[end] && strcmp(word, unit) == 0)
		return times;
	return !*line || (owned && strncmp(line, " (", 2) == 0);
}

void vn_lines_once(vn_lines *l, const char *first, const char *unit, const char *format, ...)
{
	char    text[LINE_MAX_CHARS], line[LINE_MAX_CHARS + 64];
	va_list args;
	va_start(args, format);
	vn_text_print(text, sizeof text, format, args);
	va_end(args);
	const size_t n = strlen(text);
	for (int i = 0; i < l->n; i++) {
		const int times = times_in_line(l->line[i], text, n, unit, *first);
		if (!times)
			continue;
		snprintf(line, sizeof line, "%s (%d %s)", text, times + 1, unit);
		char *counted = strdup(line);
		if (counted) {
			free(l->line[i]);
			l->line[i] = counted;
		}
		return;
	}
	snprintf(line, sizeof line, "%s%s", text, first);
	append_line(l, line);
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
