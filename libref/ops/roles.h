/* roles.h: rounds numbers to the format of a role (libref/plan/policy.h). */
#pragma once

#include "libref/ops/real.h"
#include "libref/plan/policy.h"

#include <stdbool.h>
#include <stdint.h>

static inline bool vn_role_in_blocks(vn_role_format f)
{
	return f == VN_ROLE_Q8_0 || f == VN_ROLE_Q8_0_ROTATED;
}
/* Do some of its numbers share a scale? */
static inline bool vn_role_has_scale(vn_role_format f)
{
	return f == VN_ROLE_INT8 || vn_role_of_cache(f) || vn_role_of_inputs(f) || vn_role_in_blocks(f);
}

/* Rounds a row of n numbers in place. A row of int8 or f8-scaled shares a scale; in q8_0, blocks of
 * 32 do, and the rest of the row. q8_0-rotated: the largest power of two that divides n, at least
 * 64, is the size of the Hadamard matrix; without one, q8_0. */
void vn_role_round(double *row, int64_t n, vn_role_format f);
/* Same, some numbers of a row in int8-inputs or f8-scaled, whose largest is `most`. */
void vn_role_round_by(double *row, int64_t n, vn_role_format f, double most);
/* Same, rows of n numbers each; q8_0-rotated: n at most 1024; int8-channel: columns in
 * int8. other_ties:
 * VN_OTHER_TIES. */
void REAL(vn_role_rows)(real *x, int64_t rows, int64_t n, vn_role_format f, bool other_ties, int threads);
