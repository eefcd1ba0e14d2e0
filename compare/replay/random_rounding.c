/* random_rounding.c: see random_rounding.h. */
#include "compare/replay/random_rounding.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* A, in ulps. One rounding to nearest leaves 0.29 of root mean square; engines round once or
 * twice between two results that have a name. */
#define RESULT 0.41
/* B, in ulps of the format of sums. Adding K numbers of either sign one after another in that
 * format leaves 0.29 sqrt(K / 2). With both, transformers 5.17 on a CPU leaves at most 2 times the
 * predicted nmse over prompts, 0.67 times in the median (tests/parity/parity_partial.py). */
#define PER_TERM 0.2
/* One rounding to nearest, in ulps. Of R ranks, each rounds a part of 1 / R of the square, and a
 * sum of k parts is rounded for k = 2 to R: (R + 3) / 2 - 1 / R roundings of the whole. */
#define NEAREST 0.29

/* 32 random bits of a counter. */
static inline uint32_t hash(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return (uint32_t)(x >> 32);
}

/* The largest power of two not above |x|; 0 for 0. */
static inline double binade(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof bits);
	bits &= 0x7ff0000000000000u;
	memcpy(&x, &bits, sizeof x);
	return x;
}

/* Of mean 0 and mean square 1: uniform between -sqrt(3) and sqrt(3), from 16 bits. */
static inline double uniform(uint32_t bits16)
{
	return ((double)bits16 + 0.5) * (0x1p-16 * 3.4641016151377544) - 1.7320508075688772;
}

/* How many products a number of the output is the sum of; 0: it is none. */
static int64_t terms_of(const vn_plan *plan, const vn_node *n, int64_t keys)
{
	if (n->op == VN_OP_LINEAR)
		return vn_value_row(&plan->value[n->in[0]]);
	if (n->op == VN_OP_ATTENTION)
		return n->c.attention.head_dim + keys / 2;
	return 0;
}

static double rank_roundings(const vn_node *n)
{
	const double R = n->op == VN_OP_LINEAR ? n->c.linear.ranks : 0;

	return R > 1 ? NEAREST * sqrt((R + 3) / 2 - 1 / R) : 0;
}

/* Is the result made of whole numbers, or of numbers that were stored before? */
static bool is_exact(vn_op op)
{
	return op == VN_OP_EMBED || op == VN_OP_POSITIONS || op == VN_OP_SLICE || op == VN_OP_ROWS || op == VN_OP_TOP_K;
}

typedef struct amounts {
	double result, sums; /* in units of the binade */
	double least;        /* of an ulp: numbers below the normal ones have no smaller one */
} amounts;

#define DEFINE_ROUND_ROW(NAME, TYPE) \
	static void NAME(TYPE *x, int64_t width, uint64_t at, const amounts *a) \
	{ \
		double rr = 0; \
		for (int64_t i = 0; i < width && a->sums > 0; i++) \
			rr += (double)x[i] * (double)x[i]; \
		const double sums = a->sums * binade(sqrt(rr / (double)width)); \
		for (int64_t i = 0; i < width; i++) { \
			const double   v = (double)x[i], ulp = binade(v) * a->result; \
			const uint32_t h = hash(at + (uint64_t)i); \
			x[i] = (TYPE)(v + (v != 0 && ulp < a->least ? a->least : ulp) * uniform(h & 0xffff) + \
			              sums * uniform(h >> 16)); \
		} \
	}

DEFINE_ROUND_ROW(round_row_f32, float)
DEFINE_ROUND_ROW(round_row_f64, double)

uint64_t vn_random_key(uint64_t seed, int node)
{
	return (uint64_t)hash(seed + (uint64_t)node) << 32 | hash(~seed ^ (uint64_t)node << 32);
}

void vn_round_at_random(const vn_random_rounding *r, int node, int64_t past, int64_t tokens, void *x)
{
	const vn_plan  *plan = r->plan;
	const vn_node  *n = &plan->node[node];
	const vn_value *v = &plan->value[n->out[0]];
	const int64_t   row = vn_value_row(v), width = v->size[v->rank - 1], rows = tokens * row / width;
	const vn_dtype  in = v->wide || r->policy.storage == VN_F64 ? VN_F32 : r->policy.storage,
				   sums = r->policy.sums == VN_F16 ? VN_F16 : VN_F32;
	const amounts  a = { .result = ldexp(RESULT, -vn_dtype_digits(in)),
		                 .sums = hypot(
							 ldexp(PER_TERM * sqrt((double)terms_of(plan, n, past + tokens)), -vn_dtype_digits(sums)),
							 ldexp(rank_roundings(n), -vn_dtype_digits(in))),
		                 .least = in == VN_F16 ? RESULT * 0x1p-24 : 0 };
	const uint64_t key = vn_random_key(r->seed, node);

	if (is_exact(n->op))
		return;
#pragma omp parallel for num_threads(r->threads > 0 ? r->threads : omp_get_num_procs()) if (rows * width > 4096)
	for (int64_t i = 0; i < rows; i++) {
		const uint64_t at = key + (uint64_t)(past * row + i * width);
		if (r->width == VN_F64)
			round_row_f64((double *)x + i * width, width, at, &a);
		else
			round_row_f32((float *)x + i * width, width, at, &a);
	}
}
