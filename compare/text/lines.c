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

/* How many of the lines from..to are refused by the same word as line i. */
static int count_alike(const vn_lines *l, int i, int from, int to)
{
	const char *word = l->facts[i].allow;
	int         n = 0;

	for (int k = from; k < to; k++) {
		const char *other = l->facts[k].allow;
		n += other == word || (other && word && strcmp(other, word) == 0);
	}
	return n;
}

void vn_lines_print_refusals(const vn_lines *l, const char *who, const char *list, FILE *out)
{
	for (int i = 0; i < l->n; i++) {
		/* Of the keys of two config.json, the first line says the most. */
		const int  alike = l->facts[i].allow && strcmp(l->facts[i].allow, "config") == 0 ? 3 : 12;
		const int  before = count_alike(l, i, 0, i), more = count_alike(l, i, i + 1, l->n);
		const bool folded = before + 1 + more > alike;
		if (before && folded)
			continue;
		vn_say(out, "refused: %s%s", who, l->line[i]);
		if (folded)
			vn_say(out, "; %d more like it%s%s", more, *list ? ": " : "", list);
		fputc('\n', out);
	}
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
