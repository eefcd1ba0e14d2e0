/* shell.h: command lines that can be pasted into a shell. */
#ifndef VN_COMPARE_SHELL_H
#define VN_COMPARE_SHELL_H

#include "compare/text/lines.h"

#include <stddef.h>

enum { VN_SHELL_LINE = 1000 }; /* fits a line of vn_lines */

/* Appends a space and the word, quoted if necessary. If there is no room, or the word has control
 * characters, the line becomes "" and stays so. */
void vn_shell_add(char *line, size_t room, const char *word);

/* Adds the commands that run a model on the reference and on the GPU, and find the mistake between
 * them. source: the options that select the tokens; "": nothing is added. gpu: further options of
 * the GPU's run, or "". */
void vn_shell_runs(const char *model, const char *source, const char *gpu, vn_lines *lines);

#endif
