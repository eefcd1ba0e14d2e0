/* shell.h: command lines that can be pasted into a shell. */
#ifndef VN_LIBREF_BASE_SHELL_H
#define VN_LIBREF_BASE_SHELL_H

#include <stddef.h>

enum { VN_SHELL_LINE = 1000 }; /* enough for a command line that a person reads */

/* Start and end a line of options without a command before them: "" or " --ids 1,2". Between them, append options. */
void vn_shell_begin(char line[VN_SHELL_LINE]);
void vn_shell_option(char line[VN_SHELL_LINE], const char *option, const char *value);
void vn_shell_end(char line[VN_SHELL_LINE]);

/* Appends a space and the word, quoted if necessary. If there is no room, or the word has control
 * characters, the line becomes "" and stays so. */
void vn_shell_add(char *line, size_t room, const char *word);

#endif
