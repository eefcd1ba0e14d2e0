/* pair.h: a tensor and its candidate in memory, as all files of the measuring pass read them.
 *
 * A tensor is treated as (outer, rows, inner): rows is the token axis, outer and inner are the axes
 * before and after it (outer: the heads of attention scores).
 */
#pragma once

#include "compare/metrics/kernel.h"
#include "compare/metrics/metrics.h"

#define VN_SLICE 65536 /* elements of a row that are read twice while they are in the cache */

typedef struct vn_pair {
	const vn_metric_kernel *kernel;
	const unsigned char    *data[2]; /* [0] reference, [1] candidate */
	int64_t                 origin;  /* index of the element at the start of data */
	vn_dtype                dtype[2], grid;
	int64_t                 n, outer, rows, inner;
	bool                    tokens; /* rows are tokens */
	bool                    bits;   /* count what differs */
	bool                    brief;  /* no relative errors, no ulps, no channels */
	bool                    mapped; /* data is in shared mappings */
	bool                    masks;  /* minus infinity on both sides is a mask */
} vn_pair;

static inline const unsigned char *vn_pair_at(const vn_pair *p, int side, int64_t at)
{
	return p->data[side] + (size_t)(at - p->origin) * vn_dtype_size(p->dtype[side]);
}

/* Loads n <= VN_BLOCK numbers of one side as double. */
void vn_block_double(const vn_pair *p, int side, int64_t at, size_t n, double *x);
