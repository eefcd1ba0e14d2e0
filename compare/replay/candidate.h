/* candidate.h: reads the candidate's numbers of a checkpoint, with columns in the reference's
 * order.
 *
 * Reads   opened.cand; a matched checkpoint
 * Fills   a vn_tensor of the caller's
 */
#ifndef VN_COMPARE_CANDIDATE_H
#define VN_COMPARE_CANDIDATE_H

#include "compare/comparison/comparison.h"

/* Fills *t. order: that of the candidate's columns; VN_COLUMNS_SAME: the reference's. If it is
 * another, t->data is *own, which the caller frees; else *own is NULL. The caller releases the
 * entry (vn_recording_release). */
vn_status vn_replay_candidate(const vn_comparison *c, const vn_checkpoint *p, vn_column_order order, vn_tensor *t,
                              unsigned char **own, vn_error *err);

#endif
