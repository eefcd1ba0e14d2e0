/* relative.c: see relative.h. */
#include "compare/text/relative.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a word as vn_shell_add quotes it. Returns what follows; NULL: no word is left. */
static const char *next_word(const char *at, char word[VN_SHELL_LINE])
{
	bool   quoted = false;
	size_t n = 0;

	while (*at == ' ')
		at++;
	if (!*at)
		return NULL;
	for (; *at && (quoted || *at != ' '); at++) {
		if (*at == '\'')
			quoted = !quoted;
		else if (*at == '\\' && !quoted && at[1])
			word[n++] = *++at;
		else
			word[n++] = *at;
	}
	word[n] = '\0';
	return at;
}

/* Writes the path of a file from a folder; both are absolute, and without links. */
static bool path_from(const char *folder, const char *file, char to[PATH_MAX])
{
	size_t same = 0, n = 0;

	for (size_t i = 0; folder[i] && folder[i] == file[i]; i++)
		if (file[i] == '/')
			same = i + 1;
	const size_t whole = strlen(folder);
	if (strncmp(folder, file, whole) == 0 && file[whole] == '/')
		same = whole + 1;
	for (size_t i = same; same <= whole && i <= whole; i++)
		if (folder[i] == '/' || !folder[i]) {
			if (n + 4 > PATH_MAX)
				return false;
			memcpy(to + n, "../", 4);
			n += 3;
		}
	return snprintf(to + n, PATH_MAX - n, "%s", file + same) < (int)(PATH_MAX - n);
}

/* Writes the folder of a file, which may not exist yet. */
static bool folder_of(const char *file, char folder[PATH_MAX])
{
	char        name[PATH_MAX];
	const char *slash = strrchr(file, '/');

	if (!slash)
		return realpath(".", folder) != NULL;
	return snprintf(name, sizeof name, "%.*s", (int)(slash - file + 1), file) < (int)sizeof name &&
	       realpath(name, folder) != NULL;
}

const char *vn_relative_command(const char *command, const char *from, char text[VN_SHELL_LINE])
{
	char folder[PATH_MAX], here[PATH_MAX], file[PATH_MAX], moved[PATH_MAX], word[VN_SHELL_LINE];

	snprintf(text, VN_SHELL_LINE, "%s", command);
	if (strlen(command) >= VN_SHELL_LINE || !folder_of(from, folder) || !realpath(".", here) ||
	    strcmp(folder, here) == 0)
		return text;
	vn_shell_begin(text);
	for (const char *at = command; (at = next_word(at, word));) {
		const bool is_file = *word != '/' && *word != '-' && realpath(word, file) != NULL;
		const char *new = is_file &&path_from(folder, file, moved) ? moved : word;
		vn_shell_add(text, VN_SHELL_LINE, new);
	}
	if (!*text) {
		snprintf(text, VN_SHELL_LINE, "%s", command);
		return text;
	}
	vn_shell_end(text);
	memmove(text, text + 1, strlen(text)); /* the first space */
	return text;
}
