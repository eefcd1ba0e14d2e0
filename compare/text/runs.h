/* runs.h: suggests commands, such as those that record a model twice, and find the mistake between
 * the two. */
#pragma once

#include "compare/text/lines.h"

/* Adds the command "vernier WORD...", unless it is too long. A word that is NULL is left out. */
void vn_runs_add(vn_lines *lines, const char *const *word, int n);
/* Adds the commands that run a model on the reference and on the candidate's engine ("gpu" or
 * "ref"), and find the mistake between them. source: the options that select the tokens; "":
 * nothing is added. more: further options of the candidate's run, each after a space, or "". */
void vn_runs_suggest(const char *model, const char *source, const char *engine, const char *more, vn_lines *lines);
