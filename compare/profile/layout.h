/* layout.h: finds the order of axes in which one tensor holds the numbers of another.
 *
 * Two tensors with the same number of elements may hold the same numbers with axes permuted, split,
 * merged or inserted. Shapes may hide this, so each tensor is treated as a list of numbers, and all
 * orders of up to five axes longer than one are tried: the reference's axes, and those with one of
 * them split as the candidate's shape suggests, or in half. 512 numbers select an order; all
 * numbers confirm it (262,144 of tensors over 16 MB).
 *
 * The result is only reported; nothing is rearranged.
 */
#ifndef VN_COMPARE_LAYOUT_H
#define VN_COMPARE_LAYOUT_H

#include "capture/recording/numbers.h"

#define VN_LAYOUT_TEXT 96

typedef struct vn_layout {
	double nmse; /* of the numbers in that order */
	bool   same; /* it is the reference's own order: only the shapes differ */
	/* "head token dim": the reference's axes in the candidate's order */
	char   order[VN_LAYOUT_TEXT];
	/* the candidate's axes for a name map; "": its shape cannot be expressed in that order */
	char   axes[VN_LAYOUT_TEXT];
	/* the reference's axes in the same words; "": its own dims string is enough */
	char   to_axes[VN_LAYOUT_TEXT];
} vn_layout;

/* Searches for the order with the least nmse, at most `limit`. ref, cand: equally many numbers.
 * split: also split axes. Returns false if there is none, or on a read error, which is in ref->st
 * or cand->st. */
bool vn_layout_find(vn_numbers *ref, vn_numbers *cand, bool split, double limit, vn_layout *l);

#endif
