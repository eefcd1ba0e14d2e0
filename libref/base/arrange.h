/* arrange.h: an order that numbers may be in, as data: for index i of an axis, where it comes from.
 *
 * Converters, engines and files disagree on the order of rows and columns: heads before tokens, pairs of RoPE, parts of a fused
 * matrix, shards of ranks. Each is one of a few rules, made of numbers.
 *
 * Threads  safe, values only.
 */
#ifndef VN_LIBREF_BASE_ARRANGE_H
#define VN_LIBREF_BASE_ARRANGE_H

#include <stddef.h>
#include <stdint.h>

typedef enum vn_arrange_rule {
	VN_ARRANGE_TURNED,    /* (a,b,each) becomes (b,a,each): a transposition, pieces interleaved, or taken apart again */
	VN_ARRANGE_ROUND,     /* i + a, counted round */
	VN_ARRANGE_REVERSED,  /* pieces of `each`, the last first */
	VN_ARRANGE_EXCHANGED, /* pieces a and b of `each`, one for the other */
	VN_ARRANGE_SHIFTED,   /* i + a, the first or the last where there is none */
	VN_ARRANGE_MOVED,     /* i + a, nowhere where there is none */
	VN_ARRANGE_PADDED,    /* rows of a with b of padding behind each, read without it: what the padding gets is none's */
	VN_ARRANGE_PARTS,     /* a groups, each of three parts of the sizes `part` in this `order`; they come from three sections,
	                       * each of which has one part of all groups */
} vn_arrange_rule;

typedef struct vn_arrange {
	vn_arrange_rule rule;
	int64_t         a, b, each; /* each 0: 1 */
	int64_t         part[3], order[3]; /* PARTS: sizes of the parts 0, 1 and 2 of a group; which of them comes first, ... */
	int64_t         before;     /* so many indices stay where they are */
	int64_t         period;     /* those behind them are arranged so many at a time; 0: together. What does not fill a period, or a turn, stays */
} vn_arrange;

/* Where index i of n comes from; -1: from nowhere, it is 0. */
int64_t vn_arranged(const vn_arrange *m, int64_t i, int64_t n);

/* y (outer,n,piece) of x (outer,n,piece bytes), along the axis n. */
void vn_arrange_bytes(void *y, const void *x, const vn_arrange *m, size_t outer, size_t n, size_t piece);

#endif
