/* layout_match.h: finds which other numbers a wrong tensor holds: another checkpoint's, or its own
 * in another order.
 *
 * A checkpoint outside its limits is compared with what recordings often hold by mistake:
 *
 *   - another checkpoint: captured before or after the right operation, a stale or overwritten
 *     buffer, the next value in place
 *   - its own axes, columns or tokens in another order (text/arrangements.h), where tokens from
 *     outside may hold anything
 *   - its heads in another order
 *
 * A match counts if its nmse is at most 0.05, and at most a sixteenth of the nmse under the
 * tensor's own name. Candidates are found on 512 elements, the same places in every tensor, and
 * confirmed on all elements (with axes in another order, of more than 16 MB: on 262,144).
 *
 * The result is only reported: the checkpoint stays outside.
 *
 * Reads   opened.ref, opened.cand, the checkpoints
 * Fills   a vn_layout_match of the caller's
 */
#pragma once

#include "compare/comparison/comparison.h"
#include "compare/text/arrangements.h"

typedef enum vn_layout_kind {
	VN_LAYOUT_MATCH_NOTHING,
	VN_LAYOUT_MATCH_OTHER, /* the reference's checkpoint `entry` */
	/* bit for bit the candidate's own checkpoint `entry`, unlike in the reference */
	VN_LAYOUT_MATCH_OWN,
	VN_LAYOUT_MATCH_PERMUTED, /* axes in the order of `order` */
	VN_LAYOUT_MATCH_SHIFTED,  /* row t holds the reference's row t + shift */
	VN_LAYOUT_MATCH_REVERSED, /* its token rows are in reverse order */
	VN_LAYOUT_MATCH_COLUMNS,  /* its columns are in the order order[0], a vn_column_order */
	VN_LAYOUT_MATCH_HEADS     /* head h is the reference's head order[h] */
} vn_layout_kind;

typedef struct vn_layout_match {
	vn_layout_kind kind;
	int            entry;                   /* in the reference, or (VN_LAYOUT_MATCH_OWN) in the candidate */
	int            order[VN_HEADS_ORDERED]; /* of axes or of heads */
	double         nmse;                    /* against what it matches */
	/* "the numbers are those of layer1.attn_context ..."; "": no match */
	char           words[300];
} vn_layout_match;

/* Fills *r for a measured checkpoint that is outside. Fails if memory runs out or a file cannot be
 * read. */
vn_status vn_layout_match_find(const vn_opened *o, const vn_checkpoint *p, vn_layout_match *r, vn_error *err);
