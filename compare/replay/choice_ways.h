/* choice_ways.h: the sets of experts that right engines may choose for a token.
 *
 * Where the scores of two experts are equal within rounding, engines choose differently, and one
 * other expert is an error of a thousand roundings. The sets are those that the operation chooses
 * if the score of one chosen expert is lowered by what rounding may change: of each of the last
 * few, of the last and then of the one that takes its place; those of the chosen ones' groups; or
 * those of one group, of the first eight.
 */
#pragma once

#include "compare/replay/replay_state.h"

enum { VN_CHOICE_WAYS = 16 };

/* Of a choice, for so many tokens. Zeroed before its first use. */
typedef struct vn_choice_ways {
	int      node;
	int64_t  rows, k, experts, in_group;
	bool     unsorted; /* the order of a choice is no engine's contract */
	/* format of the scores in the candidate's recording, from which all engines then have them:
	 * they differ in nothing, and are equal within one rounding; VN_N_DTYPES: not recorded */
	vn_dtype recorded;
	double  *ids;     /* (VN_CHOICE_WAYS, rows, k) the first ones: as the engine chooses */
	bool    *is;      /* (VN_CHOICE_WAYS, rows): it is another set than those before it */
	double  *score;   /* (rows, experts): the engine's */
	double  *error;   /* (rows): mean squared error of a score; set by vn_choice_errors */
	double  *weights; /* (rows, k): the candidate's of its choice, in its order; NULL: not recorded */
} vn_choice_ways;

void      vn_choice_ways_init(vn_choice_ways *w, const vn_plan *plan, int node, int64_t rows);
void      vn_choice_ways_finish(vn_choice_ways *w);
/* Measures the errors of the scores against B, which is e[0]: the mean of the draws, at least that
 * of A, which rounds weights too. e: (n) B, draws, A. All have run the node. */
vn_status vn_choice_errors(vn_choice_ways *w, const vn_plan *plan, vn_replay_engine *const *e, int n, vn_error *err);
/* Finds the first `ways` sets of an engine that has run the node, at most VN_CHOICE_WAYS, in the
 * order of the weights: runs it again for each, and leaves its scores as they were. */
vn_status vn_choice_find_ways(vn_choice_ways *w, const vn_plan *plan, vn_replay_engine *e, int ways, vn_error *err);
/* May the experts of two slots, ids (k), be in either order? Their scores are equal within
 * rounding, or their recorded weights are equal; without weights, also if sums of scores and biases
 * chose them, which engines sort or do not. */
bool      vn_choice_is_tie(const vn_choice_ways *w, int64_t row, const double *ids, int64_t slot, int64_t other);
/* The set of a row; the engine's own if there is no such way. */
static inline double *vn_choice_way(const vn_choice_ways *w, int way, int64_t row)
{
	const int64_t at = (w->is[way * w->rows + row] ? way : 0) * w->rows + row;
	return w->ids + at * w->k;
}

/* Makes an engine that has run the node choose ids (rows, k). */
vn_status vn_choice_put(const vn_choice_ways *w, const vn_plan *plan, const double *ids, const vn_replay_engine *e,
                        vn_error *err);
