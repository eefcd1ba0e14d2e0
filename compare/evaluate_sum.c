/* evaluate_sum.c: from the scores of single tokens to those of a text; see evaluate.h. */
#include "compare/evaluate.h"
#include "compare/measure.h"

#include <math.h>
#include <stdlib.h>

typedef double (*term)(const vn_token_score *t);

static double loss_ref(const vn_token_score *t)
{
	return t->loss[0];
}

static double loss_cand(const vn_token_score *t)
{
	return t->loss[1];
}

static double gap(const vn_token_score *t)
{
	return t->loss[1] - t->loss[0];
}

static double kl(const vn_token_score *t)
{
	return t->kl;
}

/* In two passes: the differences from the mean may be far smaller than the mean. */
static vn_mean mean_of(const vn_token_score *t, int64_t n, term f)
{
	double sum = 0.0, squares = 0.0;
	for (int64_t i = 0; i < n; i++)
		sum += f(&t[i]);
	const double mean = sum / (double)n;
	for (int64_t i = 0; i < n; i++)
		squares += (f(&t[i]) - mean) * (f(&t[i]) - mean);
	return (vn_mean) { mean, n > 1 ? sqrt(squares / (double)(n - 1) / (double)n) : (double)NAN };
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return isnan(x) - isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y); /* NaN is the worst */
}

static vn_status spread_of_kl(const vn_token_score *t, int64_t n, vn_evaluation *e, vn_error *err)
{
	double *x = malloc((size_t)n * sizeof *x);
	if (!x)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld divergences", (long long)n);
	const vn_token_score *most = t;
	for (int64_t i = 0; i < n; i++) {
		x[i] = t[i].kl;
		if (ascending(&t[i].kl, &most->kl) > 0)
			most = &t[i];
	}
	e->kl_max = most->kl;
	e->kl_max_at = most->at;
	qsort(x, (size_t)n, sizeof *x, ascending);
	e->kl_p99 = x[vn_rank(n, 0.99)];
	free(x);
	return VN_OK;
}

/* A model that predicts well repeats a token about as often as its text does. One
 * whose head is fed the embedding does it nearly always. Twice as often and five
 * in a hundred more is neither chance nor style; three standard errors keep short
 * texts quiet. */
static bool echoes(double share, double repeats, int64_t n)
{
	return share - 3 * sqrt(share * (1 - share) / (double)n) > 2 * repeats + 0.05;
}

vn_status vn_evaluate_sum(const int32_t *ids, const vn_token_score *t, int64_t m, vn_evaluation *e, vn_error *err)
{
	int64_t agree = 0, strict = 0, repeats = 0, echo[2] = { 0 };

	e->scored = m;
	e->loss[0] = mean_of(t, m, loss_ref);
	e->loss[1] = mean_of(t, m, loss_cand);
	e->gap = mean_of(t, m, gap);
	e->kl = mean_of(t, m, kl);
	e->differ_at = -1;
	for (int64_t i = 0; i < m; i++) {
		const bool same = t[i].finite[0] && t[i].finite[1] && t[i].argmax[0] == t[i].argmax[1];
		strict += same;
		agree += same || t[i].tie;
		repeats += ids[t[i].at] == ids[t[i].at - 1];
		for (int s = 0; s < 2; s++) {
			e->nonfinite[s] += !t[i].finite[s];
			echo[s] += t[i].finite[s] && t[i].argmax[s] == ids[t[i].at - 1];
		}
		if (!same && e->differ_at < 0) {
			e->differ_at = t[i].at;
			e->differ[0] = t[i].argmax[0];
			e->differ[1] = t[i].argmax[1];
			e->differ_tie = t[i].tie;
		}
	}
	e->agree = (double)agree / (double)m;
	e->strict = (double)strict / (double)m;
	e->repeats = (double)repeats / (double)m;
	for (int s = 0; s < 2; s++) {
		e->perplexity[s] = exp(e->loss[s].mean);
		e->echo[s] = (double)echo[s] / (double)m;
		e->echoes[s] = echoes(e->echo[s], e->repeats, m);
	}
	return spread_of_kl(t, m, e, err);
}
