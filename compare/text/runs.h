/* runs.h: suggests the commands that record a model twice, and find the mistake between the two. */
#ifndef VN_COMPARE_RUNS_H
#define VN_COMPARE_RUNS_H

#include "compare/text/lines.h"

/* Adds the commands that run a model on the reference and on the GPU, and find the mistake between
 * them. source: the options that select the tokens; "": nothing is added. gpu: further options of
 * the GPU's run, or "". */
void vn_runs_suggest(const char *model, const char *source, const char *gpu, vn_lines *lines);

#endif
