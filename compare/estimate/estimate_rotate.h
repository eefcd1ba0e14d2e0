/* estimate_rotate.h: estimates mistakes of a rotation that none of its constants can express
 * (vn_other_rotation): rounded angles and tables; calls, recorded as one, that each count from
 * position 0; token ids used as positions; single tokens at other positions than their own. */
#ifndef VN_COMPARE_ESTIMATE_ROTATE_H
#define VN_COMPARE_ESTIMATE_ROTATE_H

#include "compare/trial/case.h"

/* Tries rounded angles and tables, exchanged sine and cosine, and calls that each count from 0. */
void vn_estimate_rotate(vn_case *t);
/* Tries token ids in place of positions, in every call or in those after the first. Call it before
 * an offset of positions is fitted, because that explains a single token as well. */
void vn_estimate_rotate_by_ids(vn_case *t);
/* Tries wrong positions of one token, or of a run of tokens: with an offset, all at one position,
 * stretched or halved. */
void vn_estimate_rotated_tokens(vn_case *t);
/* In a step of one token: fits a factor of all angles, or of the angles after the first call. at: a
 * rotation. */
void vn_estimate_stretch_of_one(vn_case *t, const vn_trial *at);

#endif
