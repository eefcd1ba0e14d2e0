/* token_score.c: one token judged by both rows of logits before it; see evaluate.h. */
#include "compare/evaluate/evaluate.h"
#include "compare/metrics/scores.h"

static double score_at(const void *row, vn_dtype dtype, int32_t id)
{
	double x;
	vn_to_f64(&x, (const unsigned char *)row + (size_t)id * vn_dtype_size(dtype), dtype, 1);
	return x;
}

vn_token_score vn_token_score_of(const void *const row[2], const vn_dtype dtype[2], int64_t width, int32_t id,
                                 int64_t at)
{
	const vn_metric_kernel *k = vn_metric_kernel_best();
	const vn_pair           pair = { .kernel = k, .data = { row[0], row[1] }, .dtype = { dtype[0], dtype[1] } };
	const vn_scores_row     both = vn_scores_sweep_row(&pair, 0, width);
	vn_token_score          t = { .at = at, .kl = both.kl, .tie = both.tie, .shared = both.shared, .of = both.of };

	t.draft[0] = t.draft[1] = VN_NO_DRAFT;

	for (int s = 0; s < 2; s++) {
		vn_scores_row own = both;
		if (!both.finite) { /* which side is it? */
			const vn_pair alone = { .kernel = k, .data = { row[s], row[s] }, .dtype = { dtype[s], dtype[s] } };
			own = vn_scores_sweep_row(&alone, 0, width);
		}
		t.finite[s] = own.finite;
		t.argmax[s] = own.finite ? (int32_t)own.argmax[s] : -1;
		t.loss[s] = own.norm[s] - score_at(row[s], dtype[s], id);
	}
	return t;
}
