/* rearrange.h: tries rearrangements of the operation's result: multiplied by a factor, plus a
 * number, capped; rows, heads or axes in another order; another checkpoint instead; rows that were
 * not written. */
#ifndef VN_COMPARE_REARRANGE_H
#define VN_COMPARE_REARRANGE_H

#include "compare/explain/trial.h"

/* Names of common overall factors, in terms of the model's sizes. */
/* clang-format off */
typedef enum vn_factor_name {
	VN_NO_NAME, VN_PLAIN_FACTOR, VN_HEAD_WIDTH, VN_OVER_HEAD_WIDTH, VN_ROOT_HEAD_WIDTH, VN_OVER_ROOT_HEAD_WIDTH,
		VN_MODEL_WIDTH, VN_OVER_MODEL_WIDTH,
	VN_ROOT_MODEL_WIDTH, VN_OVER_ROOT_MODEL_WIDTH, VN_ROOT_MODEL_OVER_HEAD, VN_ROOT_HEAD_OVER_MODEL, VN_QUERY_HEADS,
		VN_OVER_QUERY_HEADS,
	VN_127_OVER_128, VN_128_OVER_127, VN_OVER_LAYERS_AND_ONE, VN_ROOT_2, VN_OVER_ROOT_2, VN_N_FACTOR_NAMES
} vn_factor_name;
/* clang-format on */

vn_status vn_rearrange(vn_explain_trial *t, vn_error *err);
/* Tries rows that hold earlier content, another checkpoint's numbers, or 0. */
vn_status vn_rearrange_rows(vn_explain_trial *t, vn_error *err);

#endif
