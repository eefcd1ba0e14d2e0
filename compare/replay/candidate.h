/* candidate.h: what the candidate recorded: the numbers of a checkpoint, with columns in the
 * reference's order; and whether its steps follow each other.
 *
 * Reads   opened.ref, opened.cand; a matched checkpoint
 * Fills   a vn_tensor of the caller's
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Fills *t. order: that of the candidate's columns; VN_COLUMNS_SAME: the reference's. If it is
 * another, t->data is *own, which the caller frees; else *own is NULL. The caller releases the
 * entry (vn_recording_release). */
vn_status vn_replay_candidate(const vn_opened *o, const vn_checkpoint *p, vn_column_order order, vn_tensor *t,
                              unsigned char **own, vn_error *err);

/* Does step s begin at this position, and are the positions of its tokens the reference's, or all
 * moved by one number (vn_positions_moved)? */
bool vn_replay_step_follows(const vn_opened *o, const vn_step *s, int64_t position);
