/* choices.h: judges whole numbers: ids, counts, truth values; and choices, by the scores that made
 * them.
 *
 * Whole numbers are right or wrong. A run in the candidate's precision (F) shows where rounding
 * alone turns them: only what it keeps counts.
 *
 * A choice (top-k) is a set of ids in each row. Its order is no part of it, and of two scores that
 * are equal within the floor either may win: a tie, which is counted and is no error.
 */
#pragma once

#include "libref/base/tensor.h"

/* What became of ids: how many there are, are other ones, and are ties. */
typedef struct vn_ids_found {
	int64_t n, other, ties;
} vn_ids_found;

/* Compares whole numbers of one shape. floor: of F; NULL: none. */
vn_ids_found vn_choices_ids(const vn_tensor *cand, const vn_tensor *expected, const vn_tensor *floor);

/* A choice and its scores. The scores have the shape of the ids (each the score of its id), or
 * their last axis has one for each id that could be chosen. */
typedef struct vn_choice {
	const vn_tensor *ids[2];    /* the candidate's, the expected ones */
	const vn_tensor *scores[2]; /* same */
	double           margin;    /* a difference of two scores that rounding explains */
} vn_choice;

/* Compares the sets of each row. n is 0: the scores fit neither way. */
vn_ids_found vn_choices_sets(const vn_choice *x);

/* Numbers that stand beside ids (weights of experts), in the order of the expected ids: to (n) gets
 * those of `of`, which stand beside `ids`; where ids lack an expected one, those expected. */
void vn_choices_pair(const vn_tensor *of, const vn_tensor *ids, const vn_tensor *expected_of,
                     const vn_tensor *expected_ids, double *to);
