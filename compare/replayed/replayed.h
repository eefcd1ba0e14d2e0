/* replayed.h: judges each operation of a run by a replay file: what PyTorch computes from the
 * candidate's own recorded tensors (capture/recording/replayed_file.h). It takes the place of
 * compare/replay, for models of which vernier knows no plan.
 *
 * A result that differs by more floors than an operation of the candidate's precision may
 * (floors.h, choices.h) is wrong. If the file has a second round, in which the wrong results were
 * computed instead of taken, and nothing that was computed through one of them is wrong there, the
 * candidate only works in another order: that result is right. Of wrong results whose regions
 * (what was computed, not given) overlap, or hold another, the first is charged.
 *
 * Reads   request.options, opened.ref, opened.cand, opened.replayed, the judged checkpoints
 * Fills   opened.replayed (its pairs); replay and replayed of checkpoints, result.replayed,
 *         result.judged; status, fails of checkpoints that only accumulated error; lines of
 *         remarks.notes, warnings and refusals
 */
#pragma once

#include "compare/judge/choices.h"
#include "compare/replayed/floors.h"

/* What was found of a result of the file. */
typedef struct vn_replayed_finding {
	int            checkpoint; /* -1: it is not compared */
	vn_ids_found   ids;        /* n is 0: it has numbers */
	vn_floor_slope slope;
	int            exchanged; /* choices before the result (capture/recording/replayed_file.h) */
	bool           sloped;    /* the slope is known, and of this many numbers it says something */
	bool           narrow;    /* the candidate's format is coarser than the floor's */
	bool           wrong;     /* beyond its limit */
	bool           again;     /* judged in the second round */
	bool           wrong_again;
} vn_replayed_finding;

typedef struct vn_replayed_findings {
	vn_replayed_finding *of; /* (n), as the results of the file */
	int                  n;
} vn_replayed_findings;

/* Each does nothing without a replay file. Before vn_match: pairs the tensors as the file says, and
 * refuses inputs that differ. */
vn_status vn_replayed_begin(const vn_opened *o, vn_remarks *remarks, vn_error *err);
/* Judges the results of the file, and says what was not judged. */
vn_status vn_replayed_run(const vn_opened *o, vn_checkpoints *all, vn_floor_result *found, vn_lines *notes,
                          vn_replayed_findings **judged, vn_error *err);
/* After vn_replay_judge_operations: a checkpoint that is outside before the first wrong operation,
 * or in a run without one, has accumulated error only. */
void      vn_replayed_forgive(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, const vn_replayed_findings *j);
void      vn_replayed_free(vn_replayed_findings *j); /* may be NULL */

/* Returns the format in which a result's numbers are judged. */
vn_dtype vn_replayed_format(const vn_opened *o, const vn_judged_result *r);

/* Returns the result of a checkpoint; -1: it has none. */
int vn_replayed_result_of(const vn_opened *o, const vn_checkpoint *p);
