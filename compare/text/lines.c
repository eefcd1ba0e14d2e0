/* lines.c: see lines.h. */
#include "compare/text/lines.h"

#include "libref/base/say.h"
#include "libref/base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append_line(vn_lines *l, const char *text, const char *allow, size_t own)
{
	char         **more = realloc(l->line, (size_t)(l->n + 1) * sizeof *more);
	vn_line_facts *facts;

	if (!more)
		return;
	l->line = more;
	if (!(facts = realloc(l->facts, (size_t)(l->n + 1) * sizeof *facts)))
		return;
	l->facts = facts;
	facts[l->n] = (vn_line_facts) { .allow = allow, .own = own, .times = 1 };
	if ((more[l->n] = strdup(text)))
		l->n++;
}

/* Prints into `text`, a buffer of VN_LINE_MAX. */
#define PRINT(text, format) \
	do { \
		va_list args; \
		va_start(args, format); \
		vn_text_print(text, sizeof text, format, args); \
		va_end(args); \
	} while (0)

void vn_lines_add(vn_lines *l, const char *format, ...)
{
	char text[VN_LINE_MAX];

	PRINT(text, format);
	append_line(l, text, NULL, strlen(text));
}

void vn_lines_refuse(vn_lines *l, const char *allow, const char *format, ...)
{
	char text[VN_LINE_MAX], line[VN_LINE_MAX];

	PRINT(text, format);
	const int own = snprintf(line, sizeof line, "%.*s", VN_LINE_MAX - 64, text);
	vn_text_add(line, sizeof line, " (--allow %s)", allow);
	append_line(l, line, allow, (size_t)own);
}

void vn_lines_refuse_as(vn_lines *l, const char *allow, const char *format, ...)
{
	char text[VN_LINE_MAX];

	PRINT(text, format);
	append_line(l, text, allow, strlen(text));
}

void vn_lines_print_refusals(const vn_lines *l, const char *who, const char *list, FILE *out)
{
	enum { MOST = 12 };

	for (int i = 0; i < l->n && (i < MOST || l->n == MOST + 1); i++)
		vn_say(out, "refused: %s%s\n", who, l->line[i]);
	if (l->n > MOST + 1)
		vn_say(out, "refused: %sand for %d more reasons%s%s\n", who, l->n - MOST, *list ? "; " : "", list);
}

bool vn_lines_refused(const vn_lines *l, const char *allow)
{
	for (int i = 0; i < l->n; i++)
		if (l->facts[i].allow && strcmp(l->facts[i].allow, allow) == 0)
			return true;
	return false;
}

void vn_lines_once(vn_lines *l, const char *first, const char *unit, const char *format, ...)
{
	char text[VN_LINE_MAX], line[VN_LINE_MAX + 64];

	PRINT(text, format);
	const size_t n = strlen(text);
	for (int i = 0; i < l->n; i++) {
		if (l->facts[i].own != n || memcmp(l->line[i], text, n) != 0)
			continue;
		snprintf(line, sizeof line, "%s (%d %s)", text, l->facts[i].times + 1, unit);
		char *counted = strdup(line);
		if (counted) {
			free(l->line[i]);
			l->line[i] = counted;
			l->facts[i].times++;
		}
		return;
	}
	snprintf(line, sizeof line, "%s%s", text, first);
	append_line(l, line, NULL, n);
}

void vn_lines_first(vn_lines *l, const char *line)
{
	const int before = l->n;
	vn_lines_add(l, "%s", line);
	if (l->n == before)
		return;
	char *const         last = l->line[before];
	const vn_line_facts facts = l->facts[before];
	memmove(l->line + 1, l->line, (size_t)before * sizeof *l->line);
	memmove(l->facts + 1, l->facts, (size_t)before * sizeof *l->facts);
	l->line[0] = last;
	l->facts[0] = facts;
}

void vn_lines_free(vn_lines *l)
{
	for (int i = 0; i < l->n; i++)
		free(l->line[i]);
	free(l->line);
	free(l->facts);
	*l = (vn_lines) { 0 };
}
