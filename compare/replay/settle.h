/* settle.h: finds which experts a candidate chose, where it did not record them.
 *
 * Where rounding decides a choice (choice_ways.h), a right engine may make either, and what follows
 * differs by far more than rounding. So before a step is judged, B runs it with the candidate's
 * tensors in place of its own. Where rows of the results behind a choice are off by more than a few
 * floors, each set that rounding may choose is tried, and taken where the candidate's results are
 * nearer to those it gives. vernier_parity does the same (settling.py). Afterwards a choice is
 *
 *   settled  all engines choose as the candidate did: rows are judged by their own floor
 *   loose    of a token without recorded results, or where a row stays wrong although rounding
 *            decides several choices of it, of which not every combination was tried. Every second
 *            draw of a floor (draws.h) chooses otherwise there
 *   free     of all tokens, where most rows (of one-token steps, most steps) stay wrong so, if the
 *            candidate is like a draw that chooses for itself, and no other result behind the
 *            choice fits worse than as the search left it. A and B choose as their own scores say,
 *            and so does each draw: the floor includes other choices, and only larger faults show
 *
 * Where most rows stay wrong and the candidate is unlike the draws, a fault is there and stays one.
 *
 * Engines have the chosen experts of a token in the order of their weights. Without ids, the order
 * of two whose scores tie is read off what they make, where that was recorded for each slot.
 *
 * Costs, where choices without ids are behind a span: two passes of A, B and two draws, and one
 * more where slots change places; where rows are wrong behind a tie, at most 24 trials of B, in
 * each of which every token tries what only it has, and a pass of B between them; before choices
 * are free, a pass of B and all draws, and one more with A and two draws: with all else, up to
 * four times what the step costs without.
 */
#pragma once

#include "compare/replay/replay_state.h"

/* Finds the choices of the step r->at, whose points are known, and sets r->loose. Call before its
 * engines begin; does nothing without r->draws. ids: of the whole recording. */
vn_status vn_settle_step(vn_replay *r, const int32_t *ids, vn_error *err);
/* Makes A and B choose so, and the draws unless the choice is free. Call when node k is done. */
vn_status vn_settle_node(const vn_replay *r, int k, vn_error *err);
void      vn_settle_close(vn_replay *r);
