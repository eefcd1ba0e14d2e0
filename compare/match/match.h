/* match.h: pairs the tensors of both recordings by name and step.
 *
 * Reads   request.options, opened.ref, opened.cand, opened.plan
 * Fills   result.point, n_points and n_neither; of each checkpoint the name, its place in both recordings,
 *         the status where it cannot be measured (missing, extra, empty, misshapen), and vacuous
 */
#ifndef VN_COMPARE_MATCH_H
#define VN_COMPARE_MATCH_H

#include "compare/comparison/comparison.h"

/* Fills result.point and n_points. */
vn_status vn_match(vn_comparison *c, vn_error *err);

/* Counts result.n_neither. After vn_match. */
vn_status vn_count_neither(vn_comparison *c, vn_error *err);

/* Sets `vacuous` of every measured checkpoint whose agreement proves nothing: for example, both
 * sides hold one number everywhere, or the numbers of the same point of another layer. */
vn_status vn_find_vacuous(vn_comparison *c, vn_error *err);

#endif
