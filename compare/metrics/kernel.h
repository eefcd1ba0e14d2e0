/* kernel.h: the inner loops of measuring, one set for each kind of processor.
 *
 * Every set is compiled from kernel_body.inc and gives the same digits as the others: eight lanes
 * of double, element i of a block in lane i % 8, products and sums rounded one by one, the lanes
 * added in a fixed order. Two exceptions: where the product is exact, one rounding gives the same
 * as two; and the series of the exponentials are rounded once in every set. A processor without
 * AVX2 and FMA uses the plain set.
 *
 * Blocks hold at most VN_BLOCK elements; pointers may be unaligned, since they may point into a
 * mapped file. All functions are pure except for what they add to, and may run on any thread.
 */
#pragma once

#include "libref/base/dtype.h"
#include "libref/base/error.h"

#include <stdbool.h>

#define VN_BLOCK 2048
/* ULP distances are counted in buckets: 0 to 15 exactly, then eight per octave, up to 2^64. */
#define VN_ULP_BUCKETS 528
#define VN_ULP_TABLES  8

/* Sums over one block of r and c, whose numbers are all finite. */
typedef struct vn_block_sums {
	double rr, cc, rc;   /* r.r, c.c, r.c */
	double dd, ad;       /* sum (c-r)^2, sum |c-r| */
	double max_d;        /* max |c-r| */
	double max_r, max_c; /* max |r|, max |c| */
} vn_block_sums;

/* Relative differences and ULP distances, summed over blocks. */
typedef struct vn_spread {
	double               rel; /* sum |c-r| / max(|r|, scale) */
	double               max_rel;
	uint64_t             max_ulp;
	/* in: as many numbers of each side, in its format, to fetch into the cache meanwhile; NULL:
	 * none */
	const unsigned char *ahead[2];
	/* several tables, so that neighbouring elements do not wait for each other */
	uint32_t             count[VN_ULP_TABLES][VN_ULP_BUCKETS];
} vn_spread;

/* Sums over one block of a row of scores. y = (r-c) - shift approximates log p/q; only terms that
 * cannot cancel are summed. */
typedef struct vn_soft {
	double rm, cm, shift; /* in; rm and cm are the maxima of the rows */
	double zr, zc;        /* sum e^(r-rm), sum e^(c-cm) */
	/* h: sum e^(r-rm) (e^-y - 1 + y), all terms >= 0; u: sum e^(r-rm) (e^-y - 1) */
	double h, u;
} vn_soft;

/* One block of a row of scores; first: one score of each side's row. */
typedef struct vn_score_sums {
	double max[2]; /* of r and of c, including those of first */
	/* of r - first, so that the common part of the scores costs no digits */
	double sum, squares;
	bool   finite; /* all scores of both sides; else the other fields are undefined */
} vn_score_sums;

/* One side of a block as stored: f32, f16 or bf16. */
typedef struct vn_side {
	const void *data;
	vn_dtype    dtype;
} vn_side;

/* How double is scaled before a relative difference is taken, so that it keeps its digits. */
typedef struct vn_wide_scale {
	double scale, up, half;
} vn_wide_scale;

typedef struct vn_metric_kernel {
	const char *name;
	/* Converts n numbers of a format that float32 represents exactly. */
	void (*load)(float *dst, const void *src, vn_dtype from, size_t n);
	void (*sums)(vn_side r, vn_side c, size_t n, vn_block_sums *s);
	/* grid: the format whose ULPs are counted: the coarser of the two, or any for two f32. scale >
	 * 0. */
	void (*spread)(vn_side r, vn_side c, size_t n, double scale, vn_dtype grid, vn_spread *s);
	/* Adds to the sums of each column: r.r, r.d and d.d, where d = c-r. */
	void (*columns)(vn_side r, vn_side c, size_t n, double *rr, double *rd, double *dd);
	/* For blocks of double. Raises max to the largest |r| and |c|. Returns false, without changing
	 * anything, if one is not finite. */
	bool (*wide_sizes)(const double *r, const double *c, size_t n, double max[2]);
	/* Sums of r, c and c-r, each times its unit; except max_d, which is that of |c-r| itself, and
	 * max_r and max_c, which are not set. */
	void (*wide_sums)(const double *r, const double *c, size_t n, const double unit[3], vn_block_sums *s);
	/* Adds to rel and max_rel: |c-r| / max(|r|, scale / up), with all three multiplied by `half` so
	 * that c-r does not overflow. */
	void (*wide_rel)(const double *r, const double *c, size_t n, vn_wide_scale by, vn_spread *s);
	void (*wide_ulps)(const double *r, const double *c, size_t n, vn_dtype grid, vn_spread *s);
	void (*scores)(vn_side r, vn_side c, size_t n, const double first[2], vn_score_sums *s);
	/* Returns the index, from `from` on, of the first number greater than x; n: there is none. */
	size_t (*above)(vn_side s, size_t n, size_t from, double x);
	/* Adds to *s. The sides may also be double, both of them. */
	void (*soft)(vn_side r, vn_side c, size_t n, vn_soft *s);
} vn_metric_kernel;

extern const vn_metric_kernel vn_metric_kernel_plain;
#if defined(__x86_64__)
extern const vn_metric_kernel vn_metric_kernel_avx2, vn_metric_kernel_avx512;
#endif

/* Returns the best set for this processor, or the one that was chosen. */
const vn_metric_kernel *vn_metric_kernel_best(void);
/* Chooses a set by name, among those that this processor can run. Call before measuring. */
vn_status               vn_metric_kernel_choose(const char *name, vn_error *err);
/* Returns set i of those that this processor can run, for tests; NULL after the last. */
const vn_metric_kernel *vn_metric_kernel_get(int i);

/* Returns the largest distance in a bucket. Buckets follow the first four bits of a float32: the
 * bucket of distance x is its bits shifted right by 20, less 1015, which is one less than the bits
 * of 1.0f shifted so. Distance 1 is in bucket 1, and a smaller one in bucket 0. */
double vn_ulp_bucket_top(int bucket);
