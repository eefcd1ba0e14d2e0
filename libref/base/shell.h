/* shell.h: command lines that can be pasted into a shell. */
#pragma once

#include <stddef.h>

enum {
	VN_SHELL_LINE = 1000, /* enough for a command line that a person reads */
	VN_SHELL_FILE = 40,   /* for the name of a file that a proposed command writes */
};

/* Make a line of options without a command, "" or " --ids 1,2": begin, append options, end. */
void vn_shell_begin(char line[VN_SHELL_LINE]);
void vn_shell_option(char line[VN_SHELL_LINE], const char *option, const char *value);
void vn_shell_end(char line[VN_SHELL_LINE]);

/* Appends a space and the word, quoted if necessary. If there is no room, or the word has control
 * characters, the line becomes "" and stays so. */
void vn_shell_add(char *line, size_t room, const char *word);

/* Makes the name of a file that a proposed command writes unique: if reference.h5 exists, it
 * becomes "reference-2.h5", and so on. Unchanged if there is no room. */
void vn_shell_new_file(char *name, size_t room);
