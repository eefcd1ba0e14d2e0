/* floor_check.h: checks that a floor is plausible; and what the files of the floor share.
 *
 * The floor of a checkpoint is the error that the number format alone causes there. It is wrong if,
 * for example, the reference or the floor's own run has a fault. A checkpoint with a wrong floor is
 * outside (`invalid_floor`, with the reason in `detail`), loses the floor, and is judged by the limits
 * `without_floor` as well. With --allow floor it keeps the floor, and a warning says so.
 *
 * Reads   request.limits and options, opened.*, the floors of result.point
 * Fills   invalid_floor, has_floor, fails and detail of checkpoints; result.n_invalid_floors, first_invalid_floor, refusals, warnings
 */
#ifndef VN_COMPARE_FLOOR_CHECK_H
#define VN_COMPARE_FLOOR_CHECK_H

#include "compare/comparison/comparison.h"

/* Before it is measured. VN_ERR_MISMATCH: the floor is the candidate, was run with a fault, or does not say which
 * weights and config it was run with where the reference does. */
vn_status vn_floor_contract(vn_comparison *c, vn_error *err);

/* After: a recording in `precision` must keep to the limits without a floor. VN_ERR_MISMATCH: it holds the candidate's numbers. */
vn_status vn_floor_check_file(vn_comparison *c, const char *precision, vn_error *err);

/* After runs of the model: is the reference what the model computes? own: (points) nmse and worst token's nmse of a run in
 * the reference's own precision against it. Where that is finer than the candidate's, no more than a tenth of what the floor is without it; two_runs, where
 * the floor is what two runs differ by: no more than healthy engines are apart. NULL: the floor is that run, and must
 * keep to the limits without one. */
vn_status vn_floor_check_model(vn_comparison *c, vn_policy of_ref, double (*own)[2], bool two_runs, vn_error *err);

/* How far, in nmse and in that of the worst token, a floor may be beyond all floors of what it was computed from and of what
 * reads it. Healthy runs: 13 (specs/limits.md). */
#define VN_FLOOR_NEAR 100.0

/* Is each floor of a recording one that goes with those around it? rounding: the nmse of one. */
vn_status vn_floor_check_near(vn_comparison *c, double rounding, vn_error *err);

/* No floor holds where it is none, and that is a finding, unless somebody allowed it. */
__attribute__((format(printf, 3, 4)))
void      vn_floor_reject(vn_comparison *c, vn_checkpoint *p, const char *format, ...);

/* Where the reference keeps no more digits than the floor, a floor of less than one rounding is the reference over again and
 * says nothing: no floor is there then, and a line tells. */
void      vn_floor_drop_equal(vn_comparison *c);

#endif
