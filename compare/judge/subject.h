/* subject.h: the facts that a comparison and its baseline must share: digests of tokens, config,
 * weights and others.
 *
 * Reads    request, opened
 * Fills    a vn_subject of the caller
 */
#pragma once

#include "compare/comparison/comparison.h"

/* The facts that two comparisons must share before one can be the baseline of the other: digests
 * and names. */
enum { VN_SUBJECTS = 8, VN_SUBJECT_TEXT = 64 };
typedef struct vn_subject {
	char value[VN_SUBJECTS][VN_SUBJECT_TEXT]; /* "" if the recordings do not say */
} vn_subject;
extern const char *const vn_subject_key[VN_SUBJECTS]; /* keys in JSON */
/* Fills *s. */
void                     vn_subject_of(const vn_opened *o, vn_subject *s);
