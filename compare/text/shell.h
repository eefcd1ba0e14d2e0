/* shell.h: command lines that a person may paste into a shell. */
#ifndef VN_COMPARE_SHELL_H
#define VN_COMPARE_SHELL_H

#include "compare/text/lines.h"

#include <stddef.h>

enum { VN_SHELL_LINE = 1000 }; /* fits a line of vn_lines */

/* Appends a space and the word, quoted where a shell would read it otherwise. A line that has no room becomes "", and
 * stays so; a word with control characters makes it so, too. */
void vn_shell_add(char *line, size_t room, const char *word);

/* The commands that run a model on the reference and on the GPU, and say which mistake is between them. source: the options
 * that say the tokens; gpu: further options of the GPU's run, or "". Nothing where source is "". */
void vn_shell_runs(const char *model, const char *source, const char *gpu, vn_lines *lines);

#endif
