/* align.h: gives another recording the axes and rows of the reference, where both declare what they have.
 *
 * Reads   opened.ref
 * Changes the recordings: their axes and rows as the comparison sees them
 * Fills   lines of result.notes
 */
#ifndef VN_COMPARE_ALIGN_H
#define VN_COMPARE_ALIGN_H

#include "compare/comparison/comparison.h"

/* Sees other as the reference is, where both declare what they have: axes in another
 * order, rows of tokens that only one of them kept (those are left out of both). */
vn_status vn_align(vn_comparison *c, vn_recording *other, const char *who, vn_error *err);

/* The same of a floor: what is compared already stays as it is, so rows are cut from the floor alone. */
vn_status vn_align_to(vn_comparison *c, vn_recording *floor, const char *who, vn_error *err);

#endif
