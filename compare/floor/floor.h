/* floor.h: the error that the candidate's number format alone causes at each checkpoint.
 *
 * The floor is measured: a run of the reference engine in the candidate's precision against the reference. It comes from a
 * recording of such a run (--floor), or is computed from the model (vn_floor_run, compare/replay/replay.h).
 *
 * Reads   request.options, opened.ref, opened.cand, opened.floor, result.point
 * Fills   floor and has_floor of every measured checkpoint; result.floor_from; opened.policy
 */
#ifndef VN_COMPARE_FLOOR_H
#define VN_COMPARE_FLOOR_H

#include "compare/comparison/comparison.h"

/* Without a floor recording nothing happens. Errors: VN_ERR_MISMATCH where it is no floor of this comparison. */
vn_status vn_floor_of_file(vn_comparison *c, vn_error *err);
/* After the floor was filled in, from either source: no floor is less than what float32's sums leave, and gaps are a warning. */
void      vn_floor_finish(vn_comparison *c);

#endif
