/* estimate_linear.c: see estimate.h. */
#include "compare/estimate/estimate.h"
#include "compare/estimate/linear_product.h"
#include "compare/trial/apply_matrix.h"
#include "compare/trial/fit.h"
#include "compare/trial/score.h"

#include "libref/base/alloc.h"
#include "libref/base/arrange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 32, PADDED = 512 }; /* the most that are tried */
#define NUMBER_LEAVES 0.05         /* of the error: a correct number leaves less */

/* ---- a bias ---------------------------------------------------------------------------------- */

static void fit_bias(vn_tested_product *p)
{
	double eb = 0, bb = 0, ee = 0;

	if (!p->bias)
		return;
	for (int64_t m = 0; m < p->M; m++) {
		const double b = vn_tensor_number(p->bias, m);
		for (int64_t t = 0; t < p->T; t++) {
			const double e = vn_tested_product_error(p, t, m);
			eb += e * b;
			bb += b * b;
			ee += e * e;
		}
	}
	const double more = eb / bb;
	if (!(ee - more * eb <= NUMBER_LEAVES * ee))
		return;
	vn_trial h = vn_tested_product_with(p, VN_FINDING_BIAS_TIMES, VN_MISTAKE_W7, 1 + more);
	vn_fit_digits(p->t, &h, 1 + more);
}

/* ---- ranks that are there -------------------------------------------------------------------- */

/* The part that is missing of each of n ranks' sums and, last, of the bias, by least squares. part:
 * (n + 1). */
static bool solve_missing(const vn_tested_product *p, int n, double missing[RANKS + 1])
{
	const int     k = n + (p->bias != NULL);
	const int64_t each = p->N / n;
	double        a[(RANKS + 1) * (RANKS + 1)] = { 0 }, part[RANKS + 1];

	memset(missing, 0, (size_t)(n + 1) * sizeof *missing);
	for (int64_t r = 0; r < p->R; r++)
		for (int64_t c = 0; c < p->C; c++) {
			for (int i = 0; i < n; i++) {
				part[i] = 0;
				for (int64_t j = i * each; j < (i + 1) * each; j++)
					part[i] += p->x[r * p->N + j] * p->wc[c * p->N + j];
			}
			part[n] = p->bias ? vn_tensor_number(p->bias, vn_tested_product_channel(p, c)) : 0;
			for (int i = 0; i < k; i++) {
				missing[i] -= part[i] * p->error[r * p->C + c];
				for (int j = 0; j < k; j++)
					a[i * k + j] += part[i] * part[j];
			}
		}
	return vn_estimate_solve(a, missing, k);
}

/* ---- inputs that are not in the sum ---------------------------------------------------------- */

/* What is left of the error if the last `tail` inputs were not added. part: (R, C), the
 * contribution of the inputs after j. */
static double add_input(const vn_tested_product *p, int64_t j, double *part)
{
	double left = 0;

	for (int64_t r = 0; r < p->R; r++)
		for (int64_t c = 0; c < p->C; c++) {
			double *s = &part[r * p->C + c];
			*s += p->x[r * p->N + j] * p->wc[c * p->N + j];
			left += (p->error[r * p->C + c] + *s) * (p->error[r * p->C + c] + *s);
		}
	return left;
}

/* With this many ranks, the last rank's part looks like the end of a sum. */
enum { RANKS_LIKELY = 8 };

static void fit_tail(vn_tested_product *p)
{
	double *part = vn_alloc_zero((size_t)(p->R * p->C), sizeof *part), least = (double)INFINITY;
	int64_t best = 0;

	for (int64_t tail = 1; tail <= p->N / 2; tail++) {
		const double left = add_input(p, p->N - tail, part);
		best = left < least ? tail : best;
		least = fmin(least, left);
	}
	free(part);
	if (!(least <= NUMBER_LEAVES * vn_tested_product_error_sum(p)))
		return;
	if (p->N % best == 0 && p->N / best <= RANKS_LIKELY && vn_tested_product_may_have(p, VN_MISTAKE_P15)) {
		const int         n = (int)(p->N / best);
		const vn_rank_sum all_but_last = { n, (1u << (n - 1)) - 1, false };
		vn_trial          rank = vn_tested_product_with(p, VN_FINDING_RANKS_SUMMED, VN_MISTAKE_P15,
		                                                vn_rank_sum_number(&all_but_last));
		rank.recorder_fault = p->t->consumed == VN_CONSUMED_OTHERS;
		vn_try(p->t, &rank);
	}
	vn_trial h = VN_TRIAL(INPUTS_MISSING, p->node, .kind = VN_BY_MATRIX,
	                      .matrix = { .kind = VN_MATRIX_TAIL, .n = (int)best });
	vn_try(p->t, &h);
}

static void fit_ranks(vn_tested_product *p)
{

	for (int n = 2; n <= RANKS && vn_tested_product_may_have(p, VN_MISTAKE_P15) && !vn_case_answered(p->t); n++) {
		double      gone[RANKS + 1];
		vn_rank_sum sum = { .ranks = n };
		int         there = 0;
		bool        clear = p->N % n == 0 && n < p->R * p->C && solve_missing(p, n, gone);
		for (int i = 0; clear && i <= n; i++) {
			clear = vn_estimate_is_whole(gone[i]);
			there += i < n && gone[i] < 0.5;
			sum.present |= i < n && gone[i] < 0.5 ? (uint64_t)1 << i : 0;
		}
		if (!clear || !there || there == n)
			continue;
		sum.no_bias = gone[n] > 0.5;
		vn_trial h = vn_tested_product_with(p, VN_FINDING_RANKS_SUMMED, VN_MISTAKE_P15, vn_rank_sum_number(&sum));
		h.recorder_fault = p->t->consumed == VN_CONSUMED_OTHERS;
		vn_try(p->t, &h);
	}
}

/* ---- shards joined --------------------------------------------------------------------------- */

static bool channel_is_off(const vn_tested_product *p, int64_t channel)
{
	double dd = 0, yy = 0;

	for (int64_t t = 0; t < p->T; t++) {
		const double e = vn_tested_product_error(p, t, channel), y = vn_tensor_number(p->own, t * p->M + channel);
		dd += e * e;
		yy += y * y;
	}
	return !(dd <= VN_PEAK_LIMIT * p->t->x->unmodified.residual.floor_token * yy);
}

/* A rank's shard of a fused product is correct up to its own length: from the first channel on,
 * or (in the second half) to the last. */
static void fit_shards(vn_tested_product *p)
{
	const bool gate = vn_tested_product_may_have(p, VN_MISTAKE_P17_GATE), last = p->point == VN_POINT_UP_PROJ;
	int64_t    right = 0;

	if (!gate && !vn_tested_product_may_have(p, VN_MISTAKE_P17))
		return;
	while (right < p->M && !channel_is_off(p, last ? p->M - 1 - right : right))
		right++;
	const int64_t ranks = right ? p->M / (gate ? right : 3 * right) : 0;
	if (ranks < 2 || ranks > RANKS || p->M % ranks)
		return;
	vn_trial h = vn_tested_product_with(p, VN_FINDING_SHARDS_JOINED, gate ? VN_MISTAKE_P17_GATE : VN_MISTAKE_P17,
	                                    (double)ranks);
	vn_try(p->t, &h);
}

/* The element at row t, channel c if the outputs of n ranks were joined along the tokens. */
static int64_t index_of_joined(const vn_tested_product *p, int64_t n, int64_t t, int64_t c)
{
	const int64_t each = p->M / n, e = t * p->M + c, rank = e / (each * p->T);
	return e / each % p->T * p->M + rank * each + e % each;
}

static void fit_axis(vn_tested_product *p)
{
	const vn_step *s = vn_case_step(p->t);

	if (!vn_tested_product_may_have(p, VN_MISTAKE_P18_AXIS) || p->T < 2 || !s || s->tokens != p->T)
		return;
	for (int64_t n = 2; n <= RANKS; n++) {
		double dd = 0;
		for (int64_t r = 0; r < p->R && p->M % n == 0; r++)
			for (int64_t c = 0; c < p->C; c++) {
				const int64_t t = vn_tested_product_row(p, r), m = vn_tested_product_channel(p, c);
				const double  d = vn_tensor_number(p->cand, t * p->M + m) -
				                 vn_tensor_number(p->own, index_of_joined(p, n, t, m));
				dd += d * d;
			}
		if (p->M % n || !(dd <= NUMBER_LEAVES * vn_tested_product_error_sum(p)))
			continue;
		vn_trial h = vn_tested_product_with(p, VN_FINDING_SHARDS_ALONG_TOKENS, VN_MISTAKE_P18_AXIS, (double)n);
		vn_try(p->t, &h);
		return;
	}
}

/* Finds for each of n blocks of channels the unmodified block nearest to it, as if ranks were
 * joined in another order; returns the squared error that is left. less: the bias is subtracted
 * first, because it stays in its place. */
static double find_nearest_blocks(const vn_tested_product *p, int n, bool less, int from[RANKS])
{
	const int64_t each = p->M / n;
	double        left = 0;

	for (int i = 0; i < n; i++) {
		double least = (double)INFINITY;
		from[i] = i;
		for (int j = 0; j < n; j++) {
			double dd = 0;
			for (int64_t r = 0; r < p->R && dd < least; r++)
				for (int64_t m = 0; m < each; m++) {
					const int64_t row = vn_tested_product_row(p, r) * p->M;
					const double  bias = less ? vn_tensor_number(p->bias, i * each + m) -
                                                   vn_tensor_number(p->bias, j * each + m)
					                          : 0,
								 d = vn_tensor_number(p->cand, row + i * each + m) -
					                 vn_tensor_number(p->own, row + j * each + m) - bias;
					dd += d * d;
				}
			if (dd < least) {
				least = dd;
				from[i] = j;
			}
		}
		left += least;
	}
	return left;
}

/* A copy of z (own or fine) with its blocks in that order, to be freed. */
static void *in_order(const vn_tested_product *p, const vn_tensor *z, int n, const int *from)
{
	const vn_arrange m = { VN_ARRANGE_LISTED, .a = n, .list = from };
	const size_t     each = (size_t)(p->M / n) * vn_dtype_size(z->dtype);
	void            *x = vn_alloc((size_t)(p->T * n), each);

	vn_arrange_bytes(x, z->data, &m, (size_t)p->T, (size_t)n, each);
	return x;
}

static void try_rows(vn_tested_product *p, int n, const int *from)
{
	vn_trial h = VN_TRIAL(ROWS_REORDERED, p->node, .kind = VN_BY_MATRIX, .matrix = { .kind = VN_MATRIX_ROWS, .n = n });

	memcpy(h.applied.matrix.from, from, (size_t)n * sizeof *from);
	vn_try(p->t, &h);
}

static void try_order(vn_tested_product *p, int n, const int *from)
{
	vn_tensor      own = *p->own, fine = *p->fine;
	vn_trial       h = VN_TRIAL(SHARDS_REORDERED, p->node, .kind = VN_BY_RESULT, .result.n = n);
	VN_FREED void *a = in_order(p, &own, n, from), *b = in_order(p, &fine, n, from);

	memcpy(h.applied.result.list, from, (size_t)n * sizeof *from);
	own.data = a;
	fine.data = b;
	vn_try_numbers(p->t, &own, &fine, NULL, &h);
}

static void fit_order(vn_tested_product *p)
{
	const vn_value *y = &p->t->site->plan->value[p->n->out[0]];
	const int       most = y->rank == 3 && y->size[1] <= RANKS ? y->size[1] - 1 : RANKS; /* blocks of one head each */
	double          ee = 0;

	for (int64_t r = 0; r < p->R; r++)
		for (int64_t m = 0; m < p->M; m++)
			ee += vn_tested_product_error(p, vn_tested_product_row(p, r), m) *
			      vn_tested_product_error(p, vn_tested_product_row(p, r), m);
	for (int n = 2; n <= most && vn_tested_product_may_have(p, VN_MISTAKE_P18_ORDER) && !vn_case_answered(p->t); n++) {
		for (int less = 0; p->M % n == 0 && less < (p->bias && n <= VN_CROSSED_MOST ? 2 : 1); less++) {
			int  from[RANKS];
			bool moved = false;
			if (!(find_nearest_blocks(p, n, less, from) <= NUMBER_LEAVES * ee))
				continue;
			for (int i = 0; i < n; i++)
				moved = moved || from[i] != i;
			if (moved)
				(less ? try_rows : try_order)(p, n, from);
		}
	}
}

/* ---- rows permuted between the pairs of RoPE ------------------------------------------------- */

/* The squared error that is left if these rows of the matrix are permuted, but not the bias. */
static double left_with_pairs(const vn_tested_product *p, const vn_applied_matrix *edit, double most)
{
	double left = 0;

	for (int64_t m = 0; m < p->M && left <= most; m++) {
		const int64_t from = vn_matrix_pair_row(edit, m, p->M);
		const double  bias = p->bias ? vn_tensor_number(p->bias, m) - vn_tensor_number(p->bias, from) : 0;
		for (int64_t r = 0; r < p->R; r++) {
			const int64_t row = vn_tested_product_row(p, r) * p->M;
			const double  d = vn_tensor_number(p->cand, row + m) - vn_tensor_number(p->own, row + from) - bias;
			left += d * d;
		}
	}
	return left;
}

/* A converter that reorders rows with another number of heads than the product has, or back with
 * another than there: of queries for keys, as a rule. */
static void fit_pairs(vn_tested_product *p)
{
	const vn_value *y = &p->t->site->plan->value[p->n->out[0]];
	double          ee = 0;

	if (y->rank != 3 || !vn_tested_product_may_have(p, VN_MISTAKE_R1B))
		return;
	for (int64_t r = 0; r < p->R; r++)
		for (int64_t m = 0; m < p->M; m++) {
			const double e = vn_tested_product_error(p, vn_tested_product_row(p, r), m);
			ee += e * e;
		}
	for (int w = 4; w <= p->M && !vn_case_answered(p->t); w += 2)
		for (int way = 0; way < 4 && w != y->size[2] && p->M % w == 0; way++) {
			const int own = (int)y->size[2], back = way / 2;
			vn_trial  h = VN_TRIAL(
				 PAIRS_REORDERED, p->node, .kind = VN_BY_MATRIX,
				 .matrix = { .kind = VN_MATRIX_PAIRS, .n = way % 2, .from = { back ? own : w, back ? w : 0 } });
			if (left_with_pairs(p, &h.applied.matrix, NUMBER_LEAVES * ee) <= NUMBER_LEAVES * ee)
				vn_try(p->t, &h);
		}
}

/* ---- padded rows ----------------------------------------------------------------------------- */

/* Number i of n of a matrix whose rows are padded in memory by `by` elements but read as if they
 * were not: of its first rows, or (transposed) of all of them, in w. */
static double number_of_padded(const double *w, int64_t width, int64_t by, int64_t i, int64_t n)
{
	const int64_t from = vn_arranged(&(vn_arrange) { .rule = VN_ARRANGE_PADDED, .a = width, .b = by }, i, n);
	return from < 0 ? 0 : w[from];
}

static void fit_padding(vn_tested_product *p)
{
	enum { LOOKED_AT = 4 };
	const bool    transposed = p->n->c.linear.transposed;
	const int64_t width = transposed ? p->M : p->N, rows = transposed ? p->N : LOOKED_AT;
	double        least = (double)INFINITY, ee = 0;
	int64_t       best = 0;

	if (!vn_tested_product_may_have(p, VN_MISTAKE_W18) || p->M < LOOKED_AT || rows * width > VN_PRODUCT_MATRIX_MOST)
		return;
	double *w = vn_case_doubles_of(p->w, 0, rows * width);
	for (int64_t by = 0; by <= PADDED; by++) { /* 0: as it should be */
		double dd = 0;
		for (int64_t m = 1; m < LOOKED_AT; m++)
			for (int64_t r = 0; r < p->R; r++) {
				double y = p->bias ? vn_tensor_number(p->bias, m) : 0;
				for (int64_t k = 0; k < p->N; k++)
					y += p->x[r * p->N + k] *
					     number_of_padded(w, width, by, transposed ? k * width + m : m * width + k, rows * width);
				y -= vn_tensor_number(p->cand, vn_tested_product_row(p, r) * p->M + m);
				dd += y * y;
			}
		ee = by ? ee : dd;
		if (by && dd < least) {
			least = dd;
			best = by;
		}
	}
	free(w);
	if (!(least <= NUMBER_LEAVES * ee))
		return;
	vn_trial h = vn_tested_product_with(p, VN_FINDING_ROWS_PADDED, VN_MISTAKE_W18, (double)best);
	vn_try(p->t, &h);
}

/* ---- scales of blocks ------------------------------------------------------------------------ */

/* Tiles of other rows than the catalogue's. */
static void fit_scale_tiles(vn_tested_product *p)
{
	const vn_dtype d = p->w->dtype;

	for (int rows = 2; rows < p->M && rows <= 1024 && !vn_case_answered(p->t); rows *= 2)
		for (int way = 1; way >= -1 && (d == VN_Q4_0 || d == VN_Q5_0 || d == VN_Q8_0); way -= 2) {
			vn_trial h = vn_tested_product_with(p, VN_FINDING_SCALES_IN_TILES,
			                                    way > 0 ? VN_MISTAKE_W21 : VN_MISTAKE_W21_BACK, way * rows);
			vn_try(p->t, &h);
		}
}

/* ---- all of them ----------------------------------------------------------------------------- */

void vn_estimate_linear(vn_case *t)
{
	static void (*const fits[])(vn_tested_product *) = {
		fit_bias,
		fit_tail,
		fit_ranks,
		fit_shards,
		fit_axis,
		fit_order,
		fit_pairs,
		fit_padding,
		fit_scale_tiles,
		vn_estimate_crossed_ranks,
		vn_estimate_matrix_edit,
		vn_estimate_matrix_factor,
		vn_estimate_matrix_rolled,
	};
	vn_tested_product p = { .t = t, .own = &t->own, .fine = &t->fine, .cand = &t->site->cand };

	if (!vn_tested_product_open(&p, vn_case_node(t)))
		return;
	const bool read = vn_tested_product_read(&p);
	for (size_t i = 0; read && i < sizeof fits / sizeof *fits && !vn_case_answered(t); i++)
		fits[i](&p);
	VN_FREE(p.x, p.wc, p.error);
}
