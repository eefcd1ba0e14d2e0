/* next.h: what a person would type after a comparison, the most useful command first. */
#ifndef VN_COMPARE_NEXT_H
#define VN_COMPARE_NEXT_H

#include "compare/comparison/comparison.h"

/* Adds whole command lines. "MODEL" stands in them where no model was given and the one that a recording names is not there.
 * None where request.again is NULL. */
void vn_next_commands(const vn_comparison *c, vn_lines *lines);

#endif
