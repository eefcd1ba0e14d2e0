/* layout.h: finds the order of axes in which one tensor holds the numbers of another.
 *
 * Two tensors with the same number of elements may hold the same numbers with axes permuted, split,
 * merged or inserted. Their shapes may hide this, but each tensor is a list of numbers, and one list
 * may be the other in another order of axes. All orders of up to five axes longer than one are tried:
 * the reference's axes, and these with one of them split where the candidate's shape, or halving,
 * suggests it. 512 numbers decide; all numbers confirm (of more than 16 MB: 262,144).
 *
 * The result is reported only; nothing is rearranged.
 */
#ifndef VN_COMPARE_LAYOUT_H
#define VN_COMPARE_LAYOUT_H

#include "capture/recording/numbers.h"

#define VN_LAYOUT_TEXT 96

typedef struct vn_layout {
	double nmse;                    /* in that order */
	bool   same;                    /* it is the reference's own: only the shape is another */
	char   order[VN_LAYOUT_TEXT];   /* "head token dim": the reference's axes as the candidate's list has them */
	char   axes[VN_LAYOUT_TEXT];    /* the candidate's shape in these words, as a name map has them; empty: it is no shape of that order */
	char   to_axes[VN_LAYOUT_TEXT]; /* the reference's in the same words, where its own are not enough; empty: they are */
} vn_layout;

/* ref, cand: as many numbers each. split: also orders of parts of axes. False: in no order within limit, an nmse. What
 * cannot be read is in the st of either. */
bool vn_layout_find(vn_numbers *ref, vn_numbers *cand, bool split, double limit, vn_layout *l);

#endif
