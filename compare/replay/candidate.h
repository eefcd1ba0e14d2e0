/* candidate.h: the candidate's numbers of a checkpoint, its columns in the reference's order. */
#ifndef VN_COMPARE_CANDIDATE_H
#define VN_COMPARE_CANDIDATE_H

#include "compare/comparison/comparison.h"

/* lie: how the candidate's columns lie; VN_COLUMNS_SAME: as they were captured. In another order t->data is *own, the caller's to free
 * (else NULL); the entry is the caller's to release (vn_recording_release). */
vn_status vn_replay_candidate(const vn_comparison *c, const vn_checkpoint *p, vn_column_order lie, vn_tensor *t, unsigned char **own, vn_error *err);

#endif
