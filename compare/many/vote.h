/* vote.h: recordings without a reference: at each checkpoint the majority decides.
 *
 * Every pair is a comparison, in which the finer precision is the reference. Two recordings agree at a checkpoint where
 * their comparison is within its limits, or where neither has it. A recording is with the majority where it and those
 * that agree with it are more than half of all that could be compared with any other.
 *
 * The report is that of vn_many: a column per recording, outside where it is not with the majority. Its numbers are
 * against one of them, the elected, which is with the majority at most checkpoints (of equals the first).
 *
 * Owner    the pairs are borrowed, and must outlive the vote.
 */
#ifndef VN_COMPARE_VOTE_H
#define VN_COMPARE_VOTE_H

#include "compare/many/many.h"

/* n (n - 1) / 2 comparisons, which vn_many holds. */
enum { VN_VOTE_FEWEST = 3, VN_VOTE_MOST = 6 };
_Static_assert(VN_VOTE_MOST * (VN_VOTE_MOST - 1) / 2 <= VN_MANY_MOST, "vn_many holds all pairs");

typedef struct vn_vote {
	vn_many many;
	char    about[200]; /* many.ref: how it was decided */
} vn_vote;

/* pairs: of recordings i < j in the order 0-1, 0-2, ... 1-2, ... Warnings of a pair are told of that one of the two which
 * is not elected, of the second where neither is; strict: who has one fails. vn_vote_finish afterwards, whatever happened. */
vn_status vn_vote_count(vn_vote *v, const vn_many *pairs, char *const *path, int n, bool strict, vn_error *err);
void      vn_vote_finish(vn_vote *v);

#endif
