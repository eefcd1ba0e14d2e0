/* last_state.h: the format of the last hidden state, of which only the logits were recorded.
 *
 * Logits in float32 do not show the format of the layers before them. But they are products of one
 * hidden state with more rows of a known matrix than the state has numbers, so they determine it:
 * within 1e-6 of its size, where the numbers of 16-bit formats are 5e-4 and more apart. A state
 * that was stored in such a format lies on its numbers; any other lies between them.
 *
 * Measured (834 decodes of 17 models, one to six tokens): the mean squared distance from the
 * numbers of the format is at most 7e-8 of their spacing's square in float16, 2e-10 in bfloat16,
 * and at least 0.05 in faults of float32. Chance gives 1/12.
 *
 * Reads   opened.cand, opened.plan, opened.model
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Sets *format to VN_BF16 or VN_F16 if the state behind the last row of p, which has logits, was
 * stored so; else to VN_F32. */
vn_status vn_last_state_format(const vn_opened *o, const vn_checkpoint *p, vn_dtype *format, vn_error *err);
