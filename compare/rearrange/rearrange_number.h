/* rearrange_number.h: tries one number that changes all of an operation's result: a factor, an
 * offset, a limit, a cap, or one number everywhere. */
#ifndef VN_COMPARE_REARRANGE_NUMBER_H
#define VN_COMPARE_REARRANGE_NUMBER_H

#include "compare/rearrange/rearranged.h"

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

/* Tries one number everywhere. */
void vn_rearrange_one_value(vn_rearranged *r);
/* Tries a factor, an offset, a limit and a cap. */
void vn_rearrange_numbers(vn_rearranged *r);

#endif
