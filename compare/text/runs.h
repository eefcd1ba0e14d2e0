/* runs.h: suggests commands, such as those that record a model twice, and find the mistake between
 * the two. */
#pragma once

#include "compare/text/lines.h"

#include <stddef.h>

/* Adds the command "BEGIN WORD...", unless it is too long. A word that is NULL is left out. */
void vn_runs_of(vn_lines *lines, const char *begin, const char *const *word, size_t n);
#define vn_runs_add(lines, begin, ...) \
	vn_runs_of(lines, begin, (const char *const[]) { __VA_ARGS__ }, \
	           sizeof((const char *const[]) { __VA_ARGS__ }) / sizeof(char *))
/* Adds the commands that run a model on the reference and on the candidate's engine ("gpu" or
 * "ref"), and find the mistake between them. source: the options that select the tokens; "":
 * nothing is added. more: further options of the candidate's run, each after a space, or "". */
void vn_runs_suggest(const char *model, const char *source, const char *engine, const char *more, vn_lines *lines);
