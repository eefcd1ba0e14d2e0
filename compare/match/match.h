/* match.h: pairs the tensors of both recordings by name and step.
 *
 * Reads ref, cand, plan and options; fills point, and the status of whatever cannot be measured (missing, extra, empty, misshapen).
 */
#ifndef VN_COMPARE_MATCH_H
#define VN_COMPARE_MATCH_H

#include "compare/comparison/comparison.h"

/* Fills point: names, entries, and the status of those that cannot be measured. */
vn_status vn_match(vn_comparison *c, vn_error *err);

/* n_neither, of what was matched and asked for. */
vn_status vn_count_neither(vn_comparison *c, vn_error *err);

/* vacuous of every measured checkpoint: both sides hold one number everywhere, or the same point's of another layer. */
vn_status vn_find_vacuous(vn_comparison *c, vn_error *err);

#endif
