/* stats.c: see stats.h.
 *
 * A block is converted to double and summed in eight lanes; the compiler turns
 * the lanes into vectors, and their order is fixed by the source. A NaN or an
 * infinity is found by x - x, which is 0 for every finite x and NaN otherwise,
 * and takes part in no sum. */
#include "libref/base/stats.h"

#include "libref/base/clones.h"

#include <math.h>
#include <string.h>

enum { LANES = 8, PART = 256 };

typedef struct sum_lanes {
	double sum[LANES], squares[LANES], min[LANES], max[LANES];
} sum_lanes;

/* Explicit vectors: compilers would process these one number at a time. */
enum { WIDE = 16 };
typedef double  doubles __attribute__((vector_size(LANES * sizeof(double))));
typedef float   few __attribute__((vector_size(LANES * sizeof(float))));
typedef float   floats __attribute__((vector_size(WIDE * sizeof(float))));
typedef int32_t masks __attribute__((vector_size(WIDE * sizeof(int32_t))));

#define LOAD(type, p)      (*(const type *)memcpy(&(type) { 0 }, (p), sizeof(type)))
#define CHOOSE(mask, a, b) ((floats)(((masks)(a) & (mask)) | ((masks)(b) & ~(mask))))

/* Adds one part: LANES-wide float32 at any address. Returns 0 if any number is not finite. */
VN_CLONES
static int add_part(sum_lanes *l, const unsigned char *x)
{
	floats  low = LOAD(floats, x), high = low, bad = { 0 };
	doubles sum = LOAD(doubles, l->sum), squares = LOAD(doubles, l->squares);

	for (int i = 0; i < PART; i += WIDE) {
		const unsigned char *at = x + (size_t)i * sizeof(float);
		const floats         v = LOAD(floats, at);
		const doubles        a = __builtin_convertvector(LOAD(few, at), doubles);
		const doubles        b = __builtin_convertvector(LOAD(few, at + sizeof(few)), doubles);
		bad += v - v; /* NaN if any number is not finite */
		low = CHOOSE(v < low, v, low);
		high = CHOOSE(v > high, v, high);
		sum += a;
		squares += a * a;
		sum += b;
		squares += b * b;
	}
	for (int j = 0; j < WIDE; j++)
		if (!(bad[j] == 0.0f))
			return 0;
	memcpy(l->sum, &sum, sizeof sum);
	memcpy(l->squares, &squares, sizeof squares);
	for (int j = 0; j < WIDE; j++) {
		double *min = &l->min[j % LANES], *max = &l->max[j % LANES];
		*min = (double)low[j] < *min ? (double)low[j] : *min;
		*max = (double)high[j] > *max ? (double)high[j] : *max;
	}
	return 1;
}

static void add_one(vn_stats_sum *s, sum_lanes *l, int lane, double v)
{
	if (isnan(v)) {
		s->nan++;
	} else if (isinf(v)) {
		s->inf++;
	} else {
		l->sum[lane] += v;
		l->squares[lane] += v * v;
		l->min[lane] = v < l->min[lane] ? v : l->min[lane];
		l->max[lane] = v > l->max[lane] ? v : l->max[lane];
	}
}

static vn_stats_sum sum_block(const unsigned char *data, vn_dtype dtype, size_t n)
{
	vn_stats_sum s = { .n = (int64_t)n, .min = INFINITY, .max = -INFINITY };
	sum_lanes    l;
	float        part[PART];
	double       wide[PART];

	for (int j = 0; j < LANES; j++) {
		l.sum[j] = l.squares[j] = 0.0;
		l.min[j] = INFINITY;
		l.max[j] = -INFINITY;
	}
	for (size_t i = 0; i < n; i += PART) {
		size_t m = n - i < PART ? n - i : PART;
		if (dtype == VN_F64 || dtype == VN_I32) {
			vn_to_f64(wide, data + vn_dtype_size(dtype) * i, dtype, m);
			for (size_t j = 0; j < m; j++)
				add_one(&s, &l, (int)(j % LANES), wide[j]);
			continue;
		}
		const unsigned char *at = data + vn_dtype_bytes(dtype, i);
		if (dtype == VN_F32 && m == PART && add_part(&l, at))
			continue; /* in place, without a copy */
		vn_to_f32(part, at, dtype, m);
		if (dtype != VN_F32 && m == PART && add_part(&l, (const unsigned char *)part))
			continue;
		for (size_t j = 0; j < m; j++)
			add_one(&s, &l, (int)(j % LANES), (double)part[j]);
	}
	for (int j = 0; j < LANES; j++) {
		s.sum += l.sum[j];
		s.squares += l.squares[j];
		s.min = l.min[j] < s.min ? l.min[j] : s.min;
		s.max = l.max[j] > s.max ? l.max[j] : s.max;
	}
	return s;
}

void vn_stats_add(vn_stats_sum *s, const void *data, vn_dtype dtype, size_t n)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < n; i += VN_STATS_BLOCK) {
		const size_t       m = n - i < VN_STATS_BLOCK ? n - i : VN_STATS_BLOCK;
		const vn_stats_sum block = sum_block(p + vn_dtype_bytes(dtype, i), dtype, m);
		vn_stats_join(s, &block);
	}
}

void vn_stats_join(vn_stats_sum *s, const vn_stats_sum *block)
{
	if (s->n == 0) {
		s->min = INFINITY;
		s->max = -INFINITY;
	}
	s->n += block->n;
	s->nan += block->nan;
	s->inf += block->inf;
	s->sum += block->sum;
	s->squares += block->squares;
	s->min = block->min < s->min ? block->min : s->min;
	s->max = block->max > s->max ? block->max : s->max;
}

vn_stats vn_stats_finish(const vn_stats_sum *s)
{
	double   finite = (double)(s->n - s->nan - s->inf);
	vn_stats r = { .n = s->n, .nan = s->nan, .inf = s->inf };

	if (!(finite > 0)) {
		r.min = r.max = r.mean = r.rms = r.absmax = (double)NAN;
		return r;
	}
	r.min = s->min;
	r.max = s->max;
	r.mean = s->sum / finite;
	r.rms = sqrt(s->squares / finite);
	r.absmax = fmax(fabs(s->min), fabs(s->max));
	return r;
}

vn_stats vn_stats_of(const void *data, vn_dtype dtype, size_t n)
{
	vn_stats_sum s = { 0 };
	vn_stats_add(&s, data, dtype, n);
	return vn_stats_finish(&s);
}
