/* layout.h: in which order of axes one tensor has the numbers of another.
 *
 * Two tensors of as many numbers may be the same ones with axes permuted, one
 * axis taken apart, several merged, ones put between: whatever their shapes
 * say, each is a list of numbers, and the one list may be the other in the
 * order of some axes. Tried are all orders of up to five axes longer than one,
 * as the reference has them and with one of them taken apart where the
 * candidate's shape, or a half, suggests it. Decided on 512 numbers, confirmed
 * on all (of more than 16 MB on 262,144).
 *
 * It is looked for to be told: nothing is seen otherwise for it.
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
