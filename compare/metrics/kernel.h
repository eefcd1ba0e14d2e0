/* kernel.h: the inner loops of a comparison, one set for each kind of processor.
 *
 * Every set is compiled from kernel_body.inc and gives the same digits as the
 * others: eight lanes of double, element i of a block in lane i % 8, products
 * and sums rounded one by one (fused only where the product is exact), the lanes
 * folded in a fixed order. A processor without AVX2 gets the plain set.
 *
 * Blocks hold at most VN_BLOCK elements; their pointers may be
 * unaligned, since they may point into a mapped file. All functions are pure
 * but for what they add to and may run on any thread.
 */
#ifndef VN_COMPARE_KERNEL_H
#define VN_COMPARE_KERNEL_H

#include "libref/base/dtype.h"
#include "libref/base/error.h"

#include <stdbool.h>

#define VN_BLOCK 2048
/* Distances in ULP are counted in buckets: 0 to 15 exactly, then eight to the
 * octave, up to 2^64. */
#define VN_ULP_BUCKETS 528
#define VN_ULP_TABLES  8

/* Sums over one block of r and c, all finite. */
typedef struct vn_block_sums {
	double rr, cc, rc;      /* r.r, c.c, r.c */
	double dd, ad;          /* sum (c-r)^2, sum |c-r| */
	double max_d;           /* max |c-r| */
	double max_r, max_c;    /* max |r|, max |c| */
} vn_block_sums;

/* Relative differences and ULP distances, added up over blocks. */
typedef struct vn_spread {
	double   rel;           /* sum |c-r| / max(|r|, scale) */
	double   max_rel;
	uint64_t max_ulp;
	uint32_t count[VN_ULP_TABLES][VN_ULP_BUCKETS]; /* several, so that neighbours do not wait for each other */
} vn_spread;

/* Sums over one block of a row of scores; rm and cm are the maxima of the rows. y = (r-c) - shift is about log p/q,
 * and of it only what cannot cancel is summed. */
typedef struct vn_soft {
	double zr, zc;          /* sum e^(r-rm), sum e^(c-cm) */
	double h, u;            /* sum e^(r-rm) (e^-y - 1 + y), no term of which is negative; sum e^(r-rm) (e^-y - 1) */
} vn_soft;

/* One block of a row of scores; first: a score of each side's row. */
typedef struct vn_score_sums {
	double max[2];          /* of r and of c, those of first among them */
	double sum, squares;    /* of r - first: what the scores share takes no digits */
	bool   finite;          /* all of both; else the others say nothing */
} vn_score_sums;

/* One side of a block, as it is in the file: f32, f16 or bf16. */
typedef struct vn_side {
	const void *data;
	vn_dtype    dtype;
} vn_side;

typedef struct vn_metric_kernel {
	const char *name;
	/* n numbers of a format that float32 holds exactly to float32. */
	void (*load)(float *dst, const void *src, vn_dtype from, size_t n);
	void (*sums)(vn_side r, vn_side c, size_t n, vn_block_sums *s);
	/* grid: the format whose ULPs are counted: the coarser of the two, or any for two f32; scale > 0. */
	void (*spread)(vn_side r, vn_side c, size_t n, double scale, vn_dtype grid, vn_spread *s);
	/* To sums of each place of a row: r.r, r.d and d.d, d = c-r. */
	void (*columns)(vn_side r, vn_side c, size_t n, double *rr, double *rd, double *dd);
	/* Of blocks of double. max becomes the largest |r| and |c|, if it is less; false, and nothing, where one is not finite. */
	bool (*wide_sizes)(const double *r, const double *c, size_t n, double max[2]);
	/* r, c and c-r times unit: sums of those; but max_d of |c-r| as it is, and no max_r and max_c. */
	void (*wide_sums)(const double *r, const double *c, size_t n, const double unit[3], vn_block_sums *s);
	/* To rel and max_rel: |c-r| / max(|r|, scale / up), with all three taken `half` times lest c-r overflows. */
	void (*wide_rel)(const double *r, const double *c, size_t n, double scale, double up, double half, vn_spread *s);
	void (*wide_ulps)(const double *r, const double *c, size_t n, vn_dtype grid, vn_spread *s);
	void (*scores)(vn_side r, vn_side c, size_t n, const double first[2], vn_score_sums *s);
	/* The first number from `from` on that is more than x; n: none is. */
	size_t (*above)(vn_side s, size_t n, size_t from, double x);
	/* Adds to s. The sides may be double, too, both of them. */
	void (*soft)(vn_side r, vn_side c, size_t n, double rm, double cm, double shift, vn_soft *s);
} vn_metric_kernel;

extern const vn_metric_kernel vn_kernel_plain;
#if defined(__x86_64__)
extern const vn_metric_kernel vn_kernel_avx2, vn_kernel_avx512;
#endif

/* The best set this processor can run, or the chosen one. */
const vn_metric_kernel *vn_kernel_best(void);
/* The set of this name, of those this processor can run. Before anything is measured. */
vn_status vn_kernel_choose(const char *name, vn_error *err);
/* Set i of those this processor can run, for tests; NULL after the last. */
const vn_metric_kernel *vn_kernel_get(int i);

/* A bucket's largest distance, and the bucket of a distance. */
double vn_ulp_bucket_top(int bucket);
int    vn_ulp_bucket(uint64_t distance);

#endif
