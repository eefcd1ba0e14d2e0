/* misshapen.h: finds what a misshapen checkpoint holds: the reference's numbers in another order,
 * or another checkpoint.
 *
 * Reads   request.limits and options, opened.ref, opened.cand, the checkpoints
 * Fills   contents of misshapen checkpoints
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Fills contents of every misshapen checkpoint. Fails only if memory runs out. */
vn_status vn_tell_misshapen(const vn_opened *o, vn_checkpoints *all, vn_error *err);
