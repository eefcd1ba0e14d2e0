/* vote.h: compares recordings without a reference: at each checkpoint the majority decides.
 *
 * Every pair is compared, with the finer precision as the reference. Two recordings agree at a
 * checkpoint if their comparison is within its limits there. A recording is with the majority if it
 * and those that agree with it are more than half of those that have the checkpoint. One that lacks
 * it has no vote there, and is not judged by it. If two recordings were compared with others, but
 * not with each other, the vote ends, because they might disagree.
 *
 * The report is that of vn_many: one column per recording, outside where it is not with the
 * majority. Its numbers are relative to one recording, the elected one, which is with the majority
 * at most checkpoints (the first, if several are).
 *
 * Owner    the pairs are borrowed and must outlive the vote.
 */
#pragma once

#include "compare/many/many.h"

/* All n (n - 1) / 2 pairs must fit into a vn_many. */
enum { VN_VOTE_FEWEST = 3, VN_VOTE_MOST = 6 };
_Static_assert(VN_VOTE_MOST *(VN_VOTE_MOST - 1) / 2 <= VN_MANY_MOST, "vn_many holds all pairs");

typedef struct vn_vote {
	vn_many many;
	char    about[200]; /* many.ref: how it was decided */
} vn_vote;

/* Counts the votes. pairs: the comparisons of recordings i < j in the order 0-1, 0-2, ... 1-2, ...
 * digits (n): vn_dtype_digits of each recording's format.
 * strict: a recording with a warning fails. A warning of a pair is given to the recording of the
 * two that is not always with the majority. If that is true of both or none: to the one that is not
 * elected, or the second.
 * Call vn_vote_finish afterwards, also after a failure. */
vn_status vn_vote_count(vn_vote *v, const vn_many *pairs, char *const *path, const int *digits, int n, bool strict,
                        vn_error *err);
void      vn_vote_finish(vn_vote *v);
