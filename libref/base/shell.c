/* shell.c: see shell.h. */
#include "libref/base/shell.h"

#include "libref/base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_plain(const char *word)
{
	static const char also[] = "_./:=@%+,-";

	for (const char *p = word; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || strchr(also, *p)))
			return false;
	return *word;
}

void vn_shell_add(char *line, size_t room, const char *word)
{
	const bool plain = is_plain(word);
	size_t     at = strlen(line);
	bool fits = at > 0 && at + 4 * strlen(word) + 4 <= room; /* each byte may be a quote, which takes four: '\'' */

	for (const char *p = word; fits && *p; p++)
		fits = !vn_text_control(*p);
	if (!fits) {
		*line = '\0';
		return;
	}
	line[at++] = ' ';
	if (!plain)
		line[at++] = '\'';
	for (const char *p = word; *p; p++) {
		if (*p == '\'') {
			memcpy(line + at, "'\\'", 3);
			at += 3;
		}
		line[at++] = *p;
	}
	if (!plain)
		line[at++] = '\'';
	line[at] = '\0';
}

/* vn_shell_add takes an empty line for one that had no room. */
void vn_shell_begin(char line[VN_SHELL_LINE])
{
	strcpy(line, ".");
}

void vn_shell_option(char line[VN_SHELL_LINE], const char *option, const char *value)
{
	vn_shell_add(line, VN_SHELL_LINE, option);
	vn_shell_add(line, VN_SHELL_LINE, value);
}

void vn_shell_end(char line[VN_SHELL_LINE])
{
	memmove(line, line + (*line == '.'), strlen(line) + (*line != '.'));
}

void vn_shell_new_file(char *name, size_t room)
{
	enum { TRIES = 1000 };
	const char *dot = strrchr(name, '.');
	const int   stem = (int)(dot ? (size_t)(dot - name) : strlen(name));
	char        other[VN_SHELL_LINE];

	if (access(name, F_OK) != 0)
		return;
	for (int n = 2; n < TRIES; n++) {
		const int length = snprintf(other, sizeof other, "%.*s-%d%s", stem, name, n, name + stem);
		if (length >= (int)sizeof other || (size_t)length >= room)
			return;
		if (access(other, F_OK) != 0) {
			memcpy(name, other, (size_t)length + 1);
			return;
		}
	}
}
