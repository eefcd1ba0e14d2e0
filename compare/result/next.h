/* next.h: suggests commands to run after a comparison, the most useful first. */
#pragma once

#include "compare/comparison/comparison.h"

/* Adds complete command lines, in which "MODEL" stands for a model that was not given and that the
 * recording does not lead to. Adds nothing if request.again is NULL. */
void vn_next_commands(const vn_opened *o, const vn_result *r, vn_lines *lines);
/* The same for a refused comparison: commands that show the two recordings. */
void vn_next_after_refusal(const vn_opened *o, const vn_result *r, vn_lines *lines);
