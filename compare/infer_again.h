/* infer_again.h: compares again by another policy: the steps, and of a large vocabulary the tokens,
 * that a search for formats looks at. Included only by compare_infer.[ch]. */
#pragma once

#include "compare/compare_line.h"

enum { VN_INFER_STEPS = 32 }; /* that are compared with a format, at most */

/* How to compare again. chosen, room: as in vn_compare_open. */
typedef struct vn_inference {
	const vn_compare_line    *k;
	const vn_compare_options *options; /* of the comparison */
	const char               *again;
	char                     *chosen;
	size_t                    room;
	vn_recording            **first; /* (2) NULL; kept by the search: the steps of a long pair that it looks at */
	bool                      heads; /* only logits were recorded, in float32 */
	bool                      later; /* these are the last ones, and all before joined to one; else the first */
	int64_t                   vocab; /* set by the search: of it, only a sample is compared; 0: all */
} vn_inference;

/* Has the pair more steps, or a vocabulary of which a sample can be compared? */
bool vn_infer_is_long(const vn_compare_line *k, const vn_opened *o);
bool vn_infer_is_wide(const vn_compare_line *k, const vn_opened *o);

/* VN_JUDGE_LOCAL: only the local errors are wanted. */
typedef enum vn_judged_part { VN_JUDGE_WHOLE, VN_JUDGE_LOCAL } vn_judged_part;

/* Compares these steps with this policy, without explanations. Close *c afterwards, also after a
 * failure. */
vn_status vn_infer_again(const vn_inference *x, vn_policy policy, vn_judged_part part, const vn_bound *bound,
                         vn_comparison *c, vn_error *err);
