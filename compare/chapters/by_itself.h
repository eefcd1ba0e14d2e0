/* by_itself.h: checks of one recording by itself: identities within a file, logits that echo their
 * input, text that is garbage.
 *
 * Reads    opened, result.point, result.first, result.origins
 * Fills    lines of result.warnings; overwritten of a checkpoint
 */
#ifndef VN_COMPARE_BY_ITSELF_H
#define VN_COMPARE_BY_ITSELF_H

#include "compare/comparison/comparison.h"

/* Marks second recordings of the candidate that do not hold the numbers of the first. */
vn_status vn_find_overwritten(vn_comparison *c, vn_error *err);
/* Checks each file by itself. At the first divergence, an identity that must hold within one file
 * separates a wrong label or place from wrong numbers. Without a divergence both files are checked
 * whole: two recordings by one recorder share its mistakes. On all threads of the comparison. */
vn_status vn_check_alone(vn_comparison *c, vn_error *err);
/* If the logits fail: does the candidate's output head see the embedding of its input? */
vn_status vn_check_echo(vn_comparison *c, vn_error *err);
/* If the logits fail or the texts differ: is the candidate's text garbage? */
vn_status vn_check_garbage(vn_comparison *c, vn_error *err);

#endif
