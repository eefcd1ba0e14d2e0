/* arrangements.h: the orders in which a wrong tensor may hold the right numbers, as a list.
 *
 * profile/layout_match.c compares two recordings in each of them, and rearrange/rearrange.c puts
 * the result of an operation in each of them. To add an order:
 *
 *   arrangements.c                   the entry, in one of its list_ functions, and its `ranges`
 *   arrangements.h                   VN_ARRANGEMENTS, which counts it; a kind, if it is a new one
 *   profile/layout_match.h, .c       for a new kind: its vn_layout_kind, and its sentence
 *   rearrange/rearrange.c            for a new kind: its finding; how to put a result in the order
 *   trial/findings.def          the row of that finding, with its sentence
 *   tests/compare/text/test_arrangements.c, test_rearrange.c
 *
 * Switches over the kinds name all of them, so that the compiler finds the places.
 *
 * An order of heads is not in the list. It follows from the numbers: vn_nearest_rows.
 *
 * Threads  safe, values only.
 */
#pragma once

#include "compare/text/columns.h"

typedef enum vn_arrangement_kind {
	VN_ARRANGED_AXES,    /* axis i is the right tensor's axis order[i] */
	VN_ARRANGED_COLUMNS, /* columns in the vn_column_order `number` */
	VN_ARRANGED_MOVED,   /* token t is the right tensor's token t + number */
	VN_ARRANGED_REVERSED /* tokens in reverse order */
} vn_arrangement_kind;

/* What is put in another order. A table in arrangements.c says what is tried on each, and why. */
typedef enum vn_arranged_what {
	VN_ARRANGED_RECORDING, /* the candidate's tensor against the reference's: layout_match.c */
	VN_ARRANGED_RESULT     /* the result of an operation against the candidate's tensor: rearrange.c */
} vn_arranged_what;

enum {
	VN_ARRANGED_RANK = 4,  /* the most axes that are exchanged */
	VN_MOVED_MOST = 4,     /* tokens */
	VN_HEADS_ORDERED = 256 /* the most heads whose order is found */
};

typedef struct vn_arrangement {
	vn_arrangement_kind kind;
	int                 number, order[VN_ARRANGED_RANK];
	/* all but AXES: the axis, and for each index on it, the index in the right tensor */
	int                 axis;
	vn_arrange          along;
} vn_arrangement;

/* The most that are listed: 8 orders of axes, 2 of columns, 3 for each move, 1 in reverse. */
enum { VN_ARRANGEMENTS = 8 + 2 + 3 * 2 * VN_MOVED_MOST + 1 };

/* Lists the arrangements that change a tensor of this shape. token: its token axis; -1: none, or
 * tokens are not to be moved. Returns how many. */
int vn_arrangements(vn_arranged_what what, const vn_shape *s, int token, vn_arrangement list[VN_ARRANGEMENTS]);

/* Returns the axis of heads, of which there are 2 to VN_HEADS_ORDERED; -1: none. */
int  vn_head_axis(vn_arranged_what what, const char *axes, const vn_shape *s);
/* For each row of x (outer,rows,row), finds the row of `in`, of the same shape, that is nearest to
 * it. A row that has no distance, because of a NaN, keeps its place. */
void vn_nearest_rows(const double *x, const double *in, int64_t outer, int64_t rows, int64_t row, int *from);
