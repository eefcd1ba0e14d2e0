/* judge_results.h: measures the results of a replay file against the candidate's, and draws the
 * conclusions of both rounds. Included only by compare/replayed.
 *
 * Reads   opened.cand, opened.ref, opened.replayed; request.options (threads)
 * Fills   replay and replayed of checkpoints; a vn_replayed_findings
 */
#pragma once

#include "compare/replayed/replayed.h"

/* Measures every result whose checkpoint is known. */
vn_status vn_replayed_measure(const vn_opened *o, vn_checkpoints *all, vn_replayed_findings *j, vn_error *err);

/* Adds notes: what was computed by whom, was not judged, is a tie, was done in another order. */
void vn_replayed_say(const vn_opened *o, const vn_checkpoints *all, vn_lines *notes, const vn_replayed_findings *j);
