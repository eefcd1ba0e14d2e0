/* settle.h: finds which experts a candidate chose, where it did not record them.
 *
 * Where rounding decides a choice (choice_ways.h), a right engine may make either, and what follows
 * differs by far more than rounding. So before a step is judged, B runs it with the candidate's
 * tensors in place of its own. Where rows of the results behind a choice are off by more than a few
 * floors, each set that rounding may choose is tried, and taken where the candidate's results are
 * nearer to those it gives. Then all engines choose as the candidate did: rows without ties are
 * judged by their own floor, the others against the choice that fits. vernier_parity does the same
 * (settling.py).
 *
 * Where most rows stay wrong although rounding decides several choices of them, the search was too
 * short, or a fault is there. If the candidate is like a draw (draws.h) that chooses for itself, it
 * is judged as one more of them: all choices behind that result are free. Else a fault stays one.
 *
 * A choice stays loose where it cannot be found: no result of that token was recorded, or rounding
 * decides several choices of a wrong row, of which not every combination is tried. Every second
 * draw of a floor makes another choice there. Most rows of a wrong result are wrong: then none is
 * loose for it; of one-token steps, most steps.
 *
 * Costs a pass of B and two draws where choices without ids are behind a span, and at most 24 more
 * of B where rows are wrong behind a tie, in each of which every token tries what only it has:
 * with all else, up to four times what the step costs without.
 */
#pragma once

#include "compare/replay/replay_state.h"

/* Finds the choices of the step r->at, whose points are known, and sets r->loose. Call before its
 * engines begin; does nothing without r->draws. ids: of the whole recording. */
vn_status vn_settle_step(vn_replay *r, const int32_t *ids, vn_error *err);
/* Makes all engines choose so. Call when node k is done. */
vn_status vn_settle_node(const vn_replay *r, int k, vn_error *err);
void      vn_settle_close(vn_replay *r);
