/* draw_choices.h: the choice of experts in the draws of a floor (draws.h).
 *
 * Where the scores of two experts are equal within rounding, engines choose differently, and one
 * other expert is an error of a thousand roundings. Few draws seldom meet a choice that one run in
 * a hundred makes, and then the floor says nothing of a run that made it. So every second draw
 * makes the other choice wherever that is possible.
 */
#pragma once

#include "compare/replay/replay_state.h"

/* The draws of a floor, and B. */
typedef struct vn_draw_set {
	vn_replay_engine *of[8]; /* (n) */
	int               n;
	vn_replay_engine *fine;
} vn_draw_set;

/* A choice of experts, for so many tokens. */
typedef struct vn_draw_choice {
	int      node;
	int64_t  rows;
	/* The format of the scores in the candidate's recording, from which all engines then have them:
	 * they differ in nothing, and are equal within one rounding. VN_N_DTYPES: not recorded. */
	vn_dtype recorded;
} vn_draw_choice;

/* Runs a choice, which all engines have run, again in the draws 1, 3...: with the scores of the
 * chosen experts lowered by what rounding may change. */
vn_status vn_draw_choices(const vn_draw_set *d, const vn_plan *plan, const vn_draw_choice *c, vn_error *err);
