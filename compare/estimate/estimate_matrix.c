/* estimate_matrix.c: see linear_product.h. */
#include "compare/estimate/linear_product.h"
#include "compare/trial/apply_matrix.h"
#include "compare/trial/score.h"
#include "compare/trial/search.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CROSSED_LEAVES 0.05 /* of the error: the right order leaves less */
#define MOST_WORK      4e9  /* multiplications for all distances of rolled columns */

/* The squared error that is left under the edit, on the tested rows and channels. */
static double left_with(const vn_tested_product *p, const vn_applied_matrix *edit, double *x, double *w)
{
	vn_matrix_made e;
	double         left = 0;

	if (!vn_matrix_made_open(&e, p->t->site->plan, p->t->site->weights, p->node, edit->fused,
	                         p->t->opened->policy.storage))
		return (double)INFINITY;
	memcpy(x, p->x, (size_t)(p->R * p->N) * sizeof *x);
	for (int64_t r = 0; r < p->R; r++)
		vn_matrix_made_input(edit, 0, x + r * p->N, p->N);
	for (int64_t c = 0; c < p->C; c++) {
		const int64_t m = vn_tested_product_channel(p, c);
		const double  b = p->bias ? vn_tensor_number(p->bias, m) : 0;
		vn_matrix_made_row(&e, edit, m, w);
		for (int64_t r = 0; r < p->R; r++) {
			double y = b - vn_tensor_number(p->cand, vn_tested_product_row(p, r) * p->M + m);
			for (int64_t k = 0; k < p->N; k++)
				y += x[r * p->N + k] * w[k];
			left += y * y;
		}
	}
	return left;
}

/* Finds, by least squares over all pairs of n ranks, the rank from[i] whose weights multiplied the
 * inputs of rank i. Returns false if no order stands out. */
static bool find_crossed_ranks(const vn_tested_product *p, int n, int from[VN_CROSSED_MOST])
{
	enum { PAIRS = VN_CROSSED_MOST * VN_CROSSED_MOST };
	const int     k = n * n;
	const int64_t each = p->N / n;
	double        a[PAIRS * PAIRS] = { 0 }, b[PAIRS] = { 0 }, part[PAIRS];
	bool          clear = true, moved = false;

	for (int64_t r = 0; r < p->R; r++)
		for (int64_t c = 0; c < p->C; c++) {
			const double bias = p->bias ? vn_tensor_number(p->bias, vn_tested_product_channel(p, c)) : 0,
						 y = vn_tensor_number(p->cand,
			                                  vn_tested_product_row(p, r) * p->M + vn_tested_product_channel(p, c)) -
			                 bias;
			for (int i = 0; i < k; i++) {
				part[i] = 0;
				for (int64_t j = 0; j < each; j++)
					part[i] += p->x[r * p->N + i / n * each + j] * p->wc[c * p->N + i % n * each + j];
			}
			for (int i = 0; i < k; i++) {
				b[i] += part[i] * y;
				for (int j = 0; j < k; j++)
					a[i * k + j] += part[i] * part[j];
			}
		}
	if (!vn_estimate_solve(a, b, k))
		return false;
	for (int i = 0; i < n && clear; i++) {
		int met = 0;
		for (int j = 0; j < n; j++) {
			const bool there = b[i * n + j] > 0.5;
			clear = clear && vn_estimate_is_whole(b[i * n + j]);
			met += there;
			from[i] = there ? j : from[i];
		}
		clear = clear && met == 1;
		moved = moved || from[i] != i;
	}
	return clear && moved;
}

void vn_estimate_crossed_ranks(vn_tested_product *p)
{

	for (int n = 2; n <= VN_CROSSED_MOST && !vn_case_answered(p->t); n++) {
		vn_trial h = VN_TRIAL(RANKS_CROSSED, p->node, .kind = VN_BY_MATRIX,
		                      .matrix = { .kind = VN_MATRIX_RANKS, .n = n });
		if (p->N % n == 0 && p->N / n > 1 && n * n < p->R * p->C && find_crossed_ranks(p, n, h.applied.matrix.from))
			vn_try(p->t, &h);
	}
}

static const struct {
	vn_finding        finding;
	vn_applied_matrix edit;
} edits[] = {
#define ROUNDED(finding, number_format, which, scale) \
	{ \
		finding, \
		{ \
			.kind = VN_MATRIX_FORMAT, .format = number_format, .of = which, .scaled = scale \
		} \
	}
	{ VN_FINDING_MATRIX_TRANSPOSED, { .kind = VN_MATRIX_TRANSPOSED } },
	{ VN_FINDING_MATRIX_TRANSPOSED, { .kind = VN_MATRIX_BACK } },
	{ VN_FINDING_MATRIX_TRANSPOSED, { .kind = VN_MATRIX_TRANSPOSED, .fused = true } },
	{ VN_FINDING_MATRIX_TRANSPOSED, { .kind = VN_MATRIX_BACK, .fused = true } },
	{ VN_FINDING_NEVER_LOADED, { .kind = VN_MATRIX_ZERO } },
	ROUNDED(VN_FINDING_WEIGHTS_ROUNDED, VN_FORMAT_BF16, VN_OF_WEIGHTS, VN_NO_SCALE),
	ROUNDED(VN_FINDING_WEIGHTS_ROUNDED, VN_FORMAT_F16, VN_OF_WEIGHTS, VN_NO_SCALE),
	ROUNDED(VN_FINDING_WEIGHTS_ROUNDED, VN_FORMAT_TF32, VN_OF_WEIGHTS, VN_NO_SCALE),
	ROUNDED(VN_FINDING_WEIGHTS_ROUNDED, VN_FORMAT_TF32_AWAY, VN_OF_WEIGHTS, VN_NO_SCALE),
	ROUNDED(VN_FINDING_WEIGHTS_QUANTISED, VN_FORMAT_E4M3, VN_OF_WEIGHTS, VN_NO_SCALE),
	ROUNDED(VN_FINDING_WEIGHTS_QUANTISED, VN_FORMAT_E5M2, VN_OF_WEIGHTS, VN_NO_SCALE),
	ROUNDED(VN_FINDING_WEIGHTS_QUANTISED, VN_FORMAT_E4M3, VN_OF_WEIGHTS, VN_SCALE_OF_ALL),
	ROUNDED(VN_FINDING_WEIGHTS_QUANTISED, VN_FORMAT_E4M3, VN_OF_WEIGHTS, VN_SCALE_OF_ROWS),
	ROUNDED(VN_FINDING_WEIGHTS_QUANTISED, VN_FORMAT_E5M2, VN_OF_WEIGHTS, VN_SCALE_OF_ALL),
	ROUNDED(VN_FINDING_WEIGHTS_QUANTISED, VN_FORMAT_E5M2, VN_OF_WEIGHTS, VN_SCALE_OF_ROWS),
	ROUNDED(VN_FINDING_WEIGHTS_QUANTISED, VN_FORMAT_INT8, VN_OF_WEIGHTS, VN_SCALE_OF_ALL),
	ROUNDED(VN_FINDING_WEIGHTS_QUANTISED, VN_FORMAT_INT8, VN_OF_WEIGHTS, VN_SCALE_OF_ROWS),
	ROUNDED(VN_FINDING_WEIGHTS_QUANTISED, VN_FORMAT_INT8_128, VN_OF_WEIGHTS, VN_SCALE_OF_ALL),
	ROUNDED(VN_FINDING_WEIGHTS_QUANTISED, VN_FORMAT_INT8_128, VN_OF_WEIGHTS, VN_SCALE_OF_ROWS),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_TF32, VN_OF_BOTH, VN_NO_SCALE),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_TF32, VN_OF_INPUTS, VN_NO_SCALE),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_TF32_AWAY, VN_OF_BOTH, VN_NO_SCALE),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_TF32_AWAY, VN_OF_INPUTS, VN_NO_SCALE),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_TF32_CUT, VN_OF_BOTH, VN_NO_SCALE),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_BF16, VN_OF_BOTH, VN_NO_SCALE),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_BF16, VN_OF_INPUTS, VN_NO_SCALE),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_F16, VN_OF_BOTH, VN_NO_SCALE),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_F16, VN_OF_INPUTS, VN_NO_SCALE),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_E4M3, VN_OF_BOTH, VN_SCALE_OF_ALL),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_E4M3, VN_OF_BOTH, VN_SCALE_OF_ROWS),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_E4M3, VN_OF_INPUTS, VN_SCALE_OF_ROWS),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_E4M3, VN_OF_BOTH, VN_NO_SCALE),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_INT8, VN_OF_BOTH, VN_SCALE_OF_ALL),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_INT8, VN_OF_BOTH, VN_SCALE_OF_ROWS),
	ROUNDED(VN_FINDING_PRODUCT_ROUNDED, VN_FORMAT_INT8, VN_OF_INPUTS, VN_SCALE_OF_ROWS),
#undef ROUNDED
};

/* Tries a factor of the weights in a product with a bias, which is not multiplied. */
void vn_estimate_matrix_factor(vn_tested_product *p)
{
	vn_trial h = VN_TRIAL(WEIGHTS_SCALED, p->node, .kind = VN_BY_MATRIX, .matrix.kind = VN_MATRIX_FACTOR);
	double   xy = 0, xx = 0, ee = 0;

	for (int64_t t = 0; p->bias && t < p->T; t++)
		for (int64_t m = 0; m < p->M; m++) {
			const double x = vn_tensor_number(p->own, t * p->M + m) - vn_tensor_number(p->bias, m),
						 e = vn_tested_product_error(p, t, m);
			xy += x * (x + e);
			xx += x * x;
			ee += e * e;
		}
	const double f = xy / xx, left = ee - (f - 1) * (f - 1) * xx;
	const bool   likely = fabs(f) > CROSSED_LEAVES && left <= CROSSED_LEAVES * ee;

	vn_round_numbers written = { .x = f, .fewest = 2, .most = 6 };
	while (likely && !vn_case_answered(p->t) && vn_next_round_number(&written, &h.applied.matrix.factor))
		vn_try(p->t, &h);
}

/* The squared error that is left of number i where columns are rolled by so many. */
static double left_rolled(const vn_tested_product *p, int64_t i, int64_t by)
{
	const double *x = p->x + i / p->C * p->N, *w = p->wc + i % p->C * p->N;
	double        y = p->error[i];

	for (int64_t k = 0; k < p->N; k++)
		y -= x[k] * (w[k < by ? k - by + p->N : k - by] - w[k]);
	return y * y;
}

/* Tries weights with rolled columns. A wrong distance shows in a few numbers, first of all in the
 * one whose error is the largest. */
void vn_estimate_matrix_rolled(vn_tested_product *p)
{
	const int64_t n = p->R * p->C;
	const double  enough = CROSSED_LEAVES * vn_tested_product_error_sum(p);
	double        least = enough, work = 0;
	int64_t       most = 0;
	vn_trial      h = VN_TRIAL(COLUMNS_ROLLED, p->node, .kind = VN_BY_MATRIX, .matrix.kind = VN_MATRIX_ROLLED);

	for (int64_t i = 1; i < n; i++)
		most = fabs(p->error[i]) > fabs(p->error[most]) ? i : most;
	if (!isfinite(enough))
		return;
	for (int64_t by = 1; by < p->N && work < MOST_WORK; by++) {
		double left = left_rolled(p, most, by);
		work += (double)p->N;
		for (int64_t i = 0; i < n && left < least && work < MOST_WORK; i++) {
			left += i == most ? 0 : left_rolled(p, i, by);
			work += (double)p->N;
		}
		if (left < least && work < MOST_WORK) {
			least = left;
			h.applied.matrix.factor = (double)(2 * by > p->N ? by - p->N : by);
		}
	}
	if (least < enough)
		vn_try(p->t, &h);
}

/* The edit that leaves the least error in the tested numbers. If several formats leave the same,
 * the first, which changes less. */
void vn_estimate_matrix_edit(vn_tested_product *p)
{
	enum { N_EDITS = sizeof edits / sizeof *edits };
	double *x = vn_alloc((size_t)(p->R * p->N), sizeof *x), *w = vn_alloc((size_t)p->N, sizeof *w),
		   least = (double)INFINITY;
	const vn_dtype storage = p->t->opened->policy.storage;
	vn_trial       h = { .node = p->node, .applied.kind = VN_BY_MATRIX };

	/* An engine that stores weights in 16 bits may have rounded the weights or the inputs. */
	for (int i = 0; i < N_EDITS; i++)
		for (int stored = 0; stored < (storage == VN_F16 || storage == VN_BF16 ? 2 : 1); stored++) {
			vn_applied_matrix edit = edits[i].edit;
			edit.stored = stored;
			const double left = left_with(p, &edit, x, w);
			if (!(left < 0.99 * least))
				continue;
			least = left;
			h.finding = edits[i].finding;
			h.applied.matrix = edit;
		}
	VN_FREE(x, w);
	if (least < vn_tested_product_error_sum(p) / 4)
		vn_try_format(p->t, &h, &h.applied.matrix.format,
		              h.applied.matrix.of == VN_OF_WEIGHTS ? VN_FORMAT_F16 : VN_FORMAT_TF32);
}
