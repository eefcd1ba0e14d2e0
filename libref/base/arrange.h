/* arrange.h: permutations of an axis, or of axes, as data: for each index, the index of its source.
 *
 * Converters, engines and files disagree on the order of rows and columns: heads before tokens,
 * pairs of RoPE, parts of a fused matrix, shards of ranks. Each is one of a few rules with numbers.
 *
 * Threads  safe, values only.
 */
#pragma once

#include "libref/base/tensor.h"

#include <stddef.h>
#include <stdint.h>

typedef enum vn_arrange_rule {
	/* (a,b,each) becomes (b,a,each): a transposition, interleaving, or its inverse */
	VN_ARRANGE_TRANSPOSED,
	VN_ARRANGE_ROUND,     /* from i + a, wrapping around */
	VN_ARRANGE_REVERSED,  /* pieces of `each`, in reverse order */
	VN_ARRANGE_EXCHANGED, /* pieces a and b of `each` are exchanged */
	/* of a pieces of n / a, piece k is piece list[k]; what is left over at the end stays */
	VN_ARRANGE_LISTED,
	VN_ARRANGE_SHIFTED, /* from i + a, clamped to the first and last index */
	VN_ARRANGE_MOVED,   /* from i + a; nothing outside the range */
	/* rows of a, each followed by b of padding, from rows without padding; the padding is 0. b less
	 * than 0: the next row overwrites the end of each */
	VN_ARRANGE_PADDED,
	VN_ARRANGE_APART, /* rows of a, from rows that begin b apart; nothing outside the range */
	/* a groups of three parts with the sizes `part`, in this `order`, from three sections, each of
	 * which has one part of every group */
	VN_ARRANGE_PARTS,
	/* the inverse of PARTS: the three sections, from such groups */
	VN_ARRANGE_SECTIONS,
} vn_arrange_rule;

typedef struct vn_arrange {
	vn_arrange_rule rule;
	int64_t         a, b, each; /* each 0: 1 */
	/* PARTS, SECTIONS: the sizes of parts 0, 1 and 2 of a group; the order in which they appear */
	int64_t         part[3], order[3];
	const int      *list;   /* LISTED: (a), borrowed */
	int64_t         before; /* this many indices at the start stay where they are */
	/* the indices after those are arranged in periods of this length; 0: all together. An
	 * incomplete period stays where it is */
	int64_t         period;
} vn_arrange;

/* Returns the index that index i of n comes from; -1: from none, the number there is 0. */
int64_t    vn_arranged(const vn_arrange *m, int64_t i, int64_t n);
/* Same. Sets *run, at least 1, to a number of indices from i on that can be copied together: they
 * come from indices that follow each other, or all from none. */
int64_t    vn_arranged_run(const vn_arrange *m, int64_t i, int64_t n, int64_t *run);
/* Returns the inverse of a rule that has one: all but LISTED, SHIFTED, PADDED and APART. That of
 * MOVED leaves out what moved outside. */
vn_arrange vn_arrange_back(const vn_arrange *m);

/* Makes y (M,N) of x (N,M), elements of `size` bytes, those of x `apart` elements apart. */
void vn_arrange_across(void *y, const void *x, size_t M, size_t N, size_t apart, size_t size);
/* Rearranges x (outer,n,piece bytes) along the axis of length n into y, of the same shape. */
void vn_arrange_bytes(void *y, const void *x, const vn_arrange *m, size_t outer, size_t n, size_t piece);
/* Same with outer 1, but fills indices [from, to) of that axis only. */
typedef struct vn_arrange_range {
	size_t from, to;
} vn_arrange_range;
void vn_arrange_part(void *y, const void *x, const vn_arrange *m, size_t n, size_t piece, vn_arrange_range part);

/* Returns the offset of element i of a tensor with n axes of these sizes. stride[k]: how far apart
 * the neighbours along axis k are. */
int64_t vn_strided(int n, const int64_t *size, const int64_t *stride, int64_t i);

/* An order of the axes of a tensor: for each axis of the result, its size, and how far apart its
 * neighbours are in the source (vn_strided). */
typedef struct vn_permutation {
	int     rank;
	int64_t size[VN_MAX_RANK], stride[VN_MAX_RANK];
} vn_permutation;

/* The result's axis i is axis order[i] of a source of shape s. */
vn_permutation vn_permutation_of(const vn_shape *s, const int *order);
/* The inverse: from that result, back to shape s. */
vn_permutation vn_permutation_back(const vn_shape *s, const int *order);
/* Writes all elements of the source x to the result y. */
void           vn_permute(double *y, const double *x, const vn_permutation *p);
