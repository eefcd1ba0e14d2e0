/* pooled_logits.c: the metrics of logits over all steps of one token; see vn_pooled_logits. */
#include "compare/metrics/average.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/pooled_logits.h"
#include "compare/judge/count.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t rows_of(const vn_opened *o, const vn_checkpoint *p)
{
	const vn_shape *s = &vn_recording_entry(o->ref, p->ref)->shape;
	return s->rank > 0 && s->dim[s->rank - 1] > 0 ? p->m.n / s->dim[s->rank - 1] : 0;
}

static bool has_one_row(const vn_checkpoint *p)
{
	return p->rows == 1 && p->m.has[VN_M_KL_MEAN];
}

/* Metrics of the rows of n checkpoints from those of each row; x (n) is scratch. */
static void over_rows(const vn_checkpoints *all, const int *in, int n, bool floor, double *value, double *x)
{
	static const vn_metric share[] = { VN_M_ARGMAX_AGREEMENT, VN_M_TOP5_AGREEMENT, VN_M_KL_MEAN };
	for (int m = 0; m < VN_N_METRICS; m++)
		value[m] = (double)NAN;
	for (size_t k = 0; k < sizeof share / sizeof *share; k++) {
		double sum = 0.0;
		for (int i = 0; i < n; i++) {
			const vn_checkpoint *p = &all->of[in[i]];
			sum += x[i] = floor ? vn_floor_value(p, share[k]) : p->m.value[share[k]];
		}
		value[share[k]] = sum / n;
	}
	qsort(x, (size_t)n, sizeof *x, vn_ascending); /* KL divergences were collected last */
	value[VN_M_KL_P99] = x[vn_quantile_index(n, 0.99)];
	value[VN_M_KL_MAX] = x[n - 1];
}

/* in, x: (g->n), its checkpoints; scratch. */
static void fill_pool(vn_checkpoints *all, const vn_pools *pools, vn_pooled_logits *g, const int *in, double *x)
{
	double strict = 0.0;
	int    worst = 0;

	over_rows(all, in, g->n, false, g->value, x);
	over_rows(all, in, g->n, true, g->floor, x);
	if (isnan(g->floor[VN_M_KL_MEAN])) /* some step has none */
		for (int m = 0; m < VN_N_METRICS; m++)
			g->floor[m] = (double)NAN;
	for (int i = 0; i < g->n; i++) {
		vn_checkpoint *p = &all->of[in[i]];
		p->pooled_logits = pools->n_pooled_logits;
		strict += p->m.argmax_strict;
		x[i] = p->m.value[VN_M_KL_MEAN];
		worst = vn_ascending(&x[i], &x[worst]) > 0 ? i : worst;
	}
	g->worst = in[worst];
	g->argmax_strict = strict / g->n;
	g->kl_half = VN_Z95 * vn_mean_of(x, g->n).error;
}

void vn_pool_logits(const vn_opened *o, vn_checkpoints *all, vn_pools *pools)
{
	vn_checkpoint *const point = all->of;
	int                  single = 0;

	for (int i = 0; i < all->n; i++) {
		if (point[i].scores && point[i].m.n)
			point[i].rows = rows_of(o, &point[i]);
		single += has_one_row(&point[i]);
	}
	int    *in = vn_alloc((size_t)single, sizeof *in);
	double *x = vn_alloc((size_t)single, sizeof *x);
	for (int i = 0; i < all->n; i++) {
		vn_pooled_logits g = { .name = point[i].name, .first = i };
		if (!has_one_row(&point[i]) || point[i].pooled_logits >= 0)
			continue;
		for (int k = i; k < all->n; k++)
			if (has_one_row(&point[k]) && strcmp(point[k].name, g.name) == 0) {
				in[g.n++] = k;
				g.last = k;
			}
		if (g.n < 2)
			continue;
		pools->pooled_logits = vn_alloc_resized(pools->pooled_logits, (size_t)pools->n_pooled_logits + 1, sizeof g);
		fill_pool(all, pools, &g, in, x);
		pools->pooled_logits[pools->n_pooled_logits++] = g;
		vn_judge_count_pooled_logits(o, all, pools, pools->n_pooled_logits - 1);
	}
	free(in);
	free(x);
}
