/* weights_change.h: the changes that may have been made to the numbers of a weight. */
#pragma once

#include "compare/weights/weights_order.h"

/* A change of every number by itself, or of blocks of numbers along a row. */
typedef enum vn_weight_change_kind {
	VN_WEIGHT_CHANGE_NONE,
	VN_WEIGHT_CHANGE_ROUNDED,
	VN_WEIGHT_CHANGE_TRUNCATED,
	VN_WEIGHT_CHANGE_SATURATED,
	VN_WEIGHT_CHANGE_FLUSHED,
	VN_WEIGHT_CHANGE_FLUSHED_SATURATED,
	VN_WEIGHT_CHANGE_PLUS,
	VN_WEIGHT_CHANGE_TIMES,
	VN_WEIGHT_CHANGE_DECAY,
	VN_WEIGHT_CHANGE_RELABELLED,
	VN_WEIGHT_CHANGE_QUANTISED
} vn_weight_change_kind;

typedef struct vn_weight_change {
	vn_weight_change_kind kind;
	vn_dtype              as; /* the format that it passed through */
	double                x;  /* the addend or factor; or 1 if zeros keep their sign */
	vn_weight_finding     found;
	uint64_t              key; /* vn_weight_say */
	char                  says[VN_WEIGHT_WORDS];
} vn_weight_change;

enum { VN_MOST_CHANGES = 48 };
/* Lists the changes that may have made b from a, judged by names, formats and statistics. Returns
 * how many. */
int    vn_weight_changes_of(const vn_weight_name *name, const vn_weight_row *a, const vn_weight_row *b,
                            const vn_weight_heads *h, vn_weight_change list[VN_MOST_CHANGES]);
/* Applies a change to one number; not for changes of blocks. */
double vn_weight_change_number(const vn_weight_change *c, double x);
/* Applies a change to n numbers x in float64 and stores them as `to` in dst. room: (n) floats of
 * scratch. */
void   vn_weight_change_row(const vn_weight_change *c, double *x, size_t n, vn_dtype to, void *dst, float *room);
