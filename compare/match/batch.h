/* batch.h: measures many pairs of checkpoints, several at a time.
 *
 * Reads   request.options and limits, opened.ref, the checkpoints, and the numbers of both
 *         recordings
 * Fills   nothing itself: it hands each measurement to the caller's `done`
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Which tensors of `other` are measured against the reference's, and what happens with the results.
 * entry returns the entry of other that belongs to checkpoint p, or -1 to skip p. done receives
 * each measurement; unread (unless NULL) is called instead if the numbers cannot be read, with the
 * reason. */
typedef struct vn_batch {
	vn_recording *other;
	int (*entry)(const vn_opened *o, const vn_checkpoint *p);
	void (*done)(vn_checkpoint *p, const vn_measured *m);
	void (*unread)(vn_checkpoint *p, const char *why);
} vn_batch;
vn_status vn_batch_measure(const vn_opened *o, vn_checkpoints *all, const vn_batch *batch, vn_error *err);

/* One of several comparisons that are measured at once. */
typedef struct vn_measuring {
	const vn_opened *o;
	vn_checkpoints  *all;
	vn_batch         batch;
	/* out: on failure the comparison has ended, and the others go on */
	vn_status        st;
	vn_error         why;
	bool             bits; /* private: also measure `differing`, because a limit uses it */
} vn_measuring;
/* Same for n comparisons, with the threads of the first. Tensors of their references that are the
 * same bytes of one file are read once: each part of such a tensor is measured against all
 * candidates while it is in a cache, and its digest is computed once. */
void vn_measure_together(vn_measuring *m, int n);
