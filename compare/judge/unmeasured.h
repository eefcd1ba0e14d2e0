/* unmeasured.h: describes, as data, what each recording holds of a checkpoint that could not be
 * measured: the field `sides` of the JSON report (specs/json.md). By it, a later comparison
 * recognises the checkpoint in a baseline. The sentence in `detail` is for people only.
 *
 * Reads   opened.ref, opened.cand, opened.plan; one checkpoint
 * Fills   a JSON array of the caller's
 */
#pragma once

#include "compare/comparison/comparison.h"

#include "libref/base/json.h"

/* Does p have `sides`: it is missing, extra, empty, misshapen or unreadable? */
bool vn_judge_is_unmeasured(const vn_checkpoint *p);

/* Returns an array of two, [reference, candidate]: null if that side does not have p; else dtype,
 * shape, axes, basis, and the position and rows of its step. For a tensor that the candidate's run
 * left out: the digest, dtype and shape it had, and what was measured. The caller owns the array;
 * NULL: no memory. */
json_t *vn_unmeasured_sides(const vn_opened *o, const vn_checkpoint *p);
