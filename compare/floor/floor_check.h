/* floor_check.h: checks that a floor is plausible.
 *
 * The floor of a checkpoint is the error that the number format alone causes there. It is wrong if,
 * for example, the reference or the floor's own run has a fault. A checkpoint with a wrong floor is
 * outside (`invalid_floor`, with the reason in `detail`), loses the floor, and is judged by the
 * limits `without_floor` as well. With --allow floor it keeps the floor, and a warning says so.
 *
 * Reads   request.limits and options, opened.*, the floors of the checkpoints
 * Fills   invalid_floor, has_floor and detail of checkpoints; n_invalid and first_invalid of the
 *         floor's result; lines of warnings and refusals
 */
#pragma once

#include "compare/comparison/comparison.h"

/* What a floor is measured for, and what it fills. */
typedef struct vn_floor_parts {
	const vn_opened *o;
	vn_checkpoints  *all;
	vn_pools        *pools;
	vn_floor_result *found;
	vn_remarks      *remarks;
	const vn_model  *model; /* of the reference's run; NULL: no model is run */
} vn_floor_parts;

/* Call before the floor is measured. VN_ERR_MISMATCH: the floor recording is the candidate, was run
 * with a fault, or does not name the weights and config it was run with although the reference
 * does. */
vn_status vn_floor_contract(const vn_opened *o, vn_remarks *remarks, vn_error *err);

/* Call after the floor was measured from a recording: it must keep to the limits that apply without
 * a floor. VN_ERR_MISMATCH: it holds the candidate's numbers. */
vn_status vn_floor_check_file(const vn_floor_parts *f, vn_error *err);

/* Call after the floor was measured by running the model: does the reference agree with what the
 * model computes?
 *
 * own (one entry per checkpoint): nmse and worst-token nmse of a run in the reference's own
 * precision, against the reference. If that precision is finer than the candidate's, own may be at
 * most a tenth of (floor - own): the floor contains own, and should consist of the candidate's
 * rounding. two_runs: the floor is the difference of two runs, and own may be as large as the
 * difference of two correct engines. own NULL: the floor is that run itself, and must keep to the
 * limits that apply without a floor. */
vn_status vn_floor_check_model(const vn_floor_parts *f, double (*own)[2], bool two_runs, vn_error *err);

/* If the reference is no finer than the floor, a floor of less than one rounding only repeats the
 * reference and says nothing. Such floors are removed, with a warning. */
void vn_floor_drop_equal(const vn_opened *o, vn_checkpoints *all, vn_lines *warnings);
