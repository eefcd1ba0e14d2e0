/* resemble.h: what a tensor that is wrong may be right as.
 *
 * A checkpoint outside its limits is held against what captures commonly hold in
 * its place: another checkpoint (taken before or after the right operation, a
 * stale or an overwritten buffer, the next value in place), its own axes or
 * the two halves of its columns in another order, its rows one or two tokens away or in reverse, its heads in
 * another order. A likeness is told only when it is real and far better than
 * what the file calls it: nmse at most 0.05, and at most a sixteenth of the nmse
 * under its own name. Candidates are found on 512 elements drawn alike from
 * every tensor and confirmed on all (axes of more than 16 MB on 262,144).
 *
 * It is told, not judged: the checkpoint stays outside.
 */
#ifndef VN_COMPARE_RESEMBLE_H
#define VN_COMPARE_RESEMBLE_H

#include "compare/compare.h"

typedef enum vn_likeness {
	VN_LIKE_NOTHING,
	VN_LIKE_OTHER,     /* the reference's checkpoint `entry` */
	VN_LIKE_OWN,       /* bit for bit the candidate's own checkpoint `entry`, which the reference has otherwise */
	VN_LIKE_PERMUTED,  /* axes in the order of `order` */
	VN_LIKE_SHIFTED,   /* row t holds the reference's row t + shift */
	VN_LIKE_REVERSED,  /* rows of tokens backwards */
	VN_LIKE_COLUMNS,   /* its columns lie as order[0], a vn_column_order, says */
	VN_LIKE_HEADS      /* head h is the reference's head order[h] */
} vn_likeness;

#define VN_LIKE_HEADS_MAX 128

typedef struct vn_resemblance {
	vn_likeness kind;
	int    entry;                    /* of the reference's, or of the candidate's entries */
	int    shift;
	int    order[VN_LIKE_HEADS_MAX]; /* of axes or of heads */
	double nmse;                     /* as that */
	char   words[300];               /* "the numbers are those of layer1.attn_context ..."; empty: nothing */
} vn_resemblance;

/* Of a measured checkpoint that is outside. Errors: memory, or a file that cannot be read. */
vn_status vn_resemble(const vn_comparison *c, int point, vn_resemblance *r, vn_error *err);

#endif
