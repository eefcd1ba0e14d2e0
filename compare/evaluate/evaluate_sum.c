/* evaluate_sum.c: sums up the scores of single tokens; see evaluate.h. */
#include "compare/evaluate/evaluate.h"

#include "capture/recording/echo.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>

/* x (4, n) is room: for the losses, their gap, and the divergence. */
static void find_means(const vn_token_score *t, int64_t n, vn_evaluation *e, double *x)
{
	double *const loss[2] = { x, x + n }, *const gap = x + 2 * n, *const kl = x + 3 * n;
	const vn_token_score *most = t;

	for (int64_t i = 0; i < n; i++) {
		loss[0][i] = t[i].loss[0];
		loss[1][i] = t[i].loss[1];
		gap[i] = t[i].loss[1] - t[i].loss[0];
		kl[i] = t[i].kl;
		if (vn_ascending(&t[i].kl, &most->kl) > 0)
			most = &t[i];
	}
	e->loss[0] = vn_mean_of(loss[0], n);
	e->loss[1] = vn_mean_of(loss[1], n);
	e->gap = vn_mean_of(gap, n);
	e->kl = vn_mean_of(kl, n);
	e->kl_max = most->kl;
	e->kl_max_at = most->at;
	qsort(kl, (size_t)n, sizeof *kl, vn_ascending);
	e->kl_p99 = kl[vn_quantile_index(n, 0.99)];
}

void vn_evaluate_sum(const int32_t *ids, const vn_token_score *t, int64_t m, vn_evaluation *e)
{
	int64_t agree = 0, strict = 0, repeats = 0, shared = 0, of = 0, echo[2] = { 0 }, accepted[2] = { 0 };
	double *x = vn_alloc_zero((size_t)m, 4 * sizeof *x);

	e->scored = m;
	find_means(t, m, e, x);
	free(x);
	e->differ_at = -1;
	for (int64_t i = 0; i < m; i++) {
		const bool same = t[i].finite[0] && t[i].finite[1] && t[i].argmax[0] == t[i].argmax[1];
		strict += same;
		agree += same || t[i].tie;
		shared += t[i].shared;
		of += t[i].of;
		repeats += ids[t[i].at] == ids[t[i].at - 1];
		e->drafts += t[i].draft[0] != VN_NO_DRAFT;
		for (int s = 0; s < 2; s++) {
			accepted[s] += t[i].draft[s] >= 0 && t[i].draft[s] == t[i].argmax[s];
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
	e->top5 = of ? (double)shared / (double)of : 0;
	e->repeats = (double)repeats / (double)m;
	for (int s = 0; s < 2; s++) {
		e->perplexity[s] = exp(e->loss[s].mean);
		e->accepted[s] = e->drafts ? (double)accepted[s] / (double)e->drafts : 0;
		e->echo[s] = (double)echo[s] / (double)m;
		e->echoes[s] = vn_echoes(e->echo[s], e->repeats, m);
	}
}

void vn_evaluate_routing(const vn_token_score *t, const vn_token_score *by_routing, int64_t m, vn_evaluation *e)
{
	double *x = vn_alloc_zero((size_t)m, 3 * sizeof *x), *const rest = x + m, *const kl = x + 2 * m;

	for (int64_t i = 0; i < m; i++) {
		x[i] = by_routing[i].loss[1] - by_routing[i].loss[0];
		rest[i] = t[i].loss[1] - by_routing[i].loss[1];
		kl[i] = by_routing[i].kl;
	}
	e->routed = true;
	e->routing = vn_mean_of(x, m);
	e->arithmetic = vn_mean_of(rest, m);
	e->routing_kl = vn_mean_of(kl, m);
	free(x);
}
