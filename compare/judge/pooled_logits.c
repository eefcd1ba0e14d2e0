/* pooled_logits.c: the metrics of logits over all steps of one token; see vn_pooled_logits. */
#include "compare/metrics/average.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/pooled_logits.h"
#include "compare/judge/count.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t rows_of(const vn_comparison *c, const vn_checkpoint *p)
{
	const vn_shape *s = &vn_recording_entry(c->opened.ref, p->ref)->shape;
	return s->rank > 0 && s->dim[s->rank - 1] > 0 ? p->m.n / s->dim[s->rank - 1] : 0;
}

/* The next checkpoint from i on that holds one row under this name; with name NULL, the next that
 * is in no pool. -1: none. */
static int next_row(const vn_comparison *c, int i, const char *name)
{
	for (; i < c->result.n_checkpoints; i++) {
		const vn_checkpoint *p = &c->result.checkpoint[i];
		if (p->rows == 1 && p->m.has[VN_M_KL_MEAN] && (name ? strcmp(p->name, name) == 0 : p->pooled_logits < 0))
			return i;
	}
	return -1;
}

/* Metrics of n rows from those of each row; x (n) is scratch. */
static void over_rows(const vn_comparison *c, const vn_pooled_logits *g, bool floor, double *value, double *x)
{
	static const vn_metric share[] = { VN_M_ARGMAX_AGREEMENT, VN_M_TOP5_AGREEMENT, VN_M_KL_MEAN };
	for (int m = 0; m < VN_N_METRICS; m++)
		value[m] = (double)NAN;
	for (size_t k = 0; k < sizeof share / sizeof *share; k++) {
		int    n = 0;
		double sum = 0.0;
		for (int i = g->first; i >= 0; i = next_row(c, i + 1, g->name)) {
			const vn_checkpoint *p = &c->result.checkpoint[i];
			sum += x[n++] = floor ? vn_floor_value(p, share[k]) : p->m.value[share[k]];
		}
		value[share[k]] = sum / n;
	}
	qsort(x, (size_t)g->n, sizeof *x, vn_ascending); /* KL divergences were collected last */
	value[VN_M_KL_P99] = x[vn_rank(g->n, 0.99)];
	value[VN_M_KL_MAX] = x[g->n - 1];
}

static vn_status fill_pool(vn_comparison *c, vn_pooled_logits *g, vn_error *err)
{
	double *x = malloc((size_t)g->n * sizeof *x), strict = 0.0;
	if (!x)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d steps", g->n);
	over_rows(c, g, false, g->value, x);
	over_rows(c, g, true, g->floor, x);
	if (isnan(g->floor[VN_M_KL_MEAN])) /* some step has none */
		for (int m = 0; m < VN_N_METRICS; m++)
			g->floor[m] = (double)NAN;
	g->worst = g->first;
	for (int i = g->first; i >= 0; i = next_row(c, i + 1, g->name)) {
		c->result.checkpoint[i].pooled_logits = c->result.n_pooled_logits;
		strict += c->result.checkpoint[i].m.argmax_strict;
		if (vn_ascending(&c->result.checkpoint[i].m.value[VN_M_KL_MEAN],
		                 &c->result.checkpoint[g->worst].m.value[VN_M_KL_MEAN]) > 0)
			g->worst = i;
	}
	g->argmax_strict = strict / g->n;
	int rows = 0;
	for (int i = g->first; i >= 0; i = next_row(c, i + 1, g->name))
		x[rows++] = c->result.checkpoint[i].m.value[VN_M_KL_MEAN];
	g->kl_half = VN_Z95 * vn_mean_of(x, rows).error;
	free(x);
	return VN_OK;
}

vn_status vn_pool_logits(vn_comparison *c, vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; i < c->result.n_checkpoints; i++)
		if (c->result.checkpoint[i].scores && c->result.checkpoint[i].m.n)
			c->result.checkpoint[i].rows = rows_of(c, &c->result.checkpoint[i]);
	for (int i = next_row(c, 0, NULL); !st && i >= 0; i = next_row(c, i + 1, NULL)) {
		vn_pooled_logits g = { .name = c->result.checkpoint[i].name, .first = i };
		for (int k = i; k >= 0; k = next_row(c, k + 1, g.name)) {
			g.last = k;
			g.n++;
		}
		if (g.n < 2)
			continue;
		vn_pooled_logits *more = realloc(c->result.pooled_logits,
		                                 ((size_t)c->result.n_pooled_logits + 1) * sizeof *more);
		if (!more)
			return vn_fail(err, VN_ERR_NOMEM, "no memory for %d steps", g.n);
		c->result.pooled_logits = more;
		st = fill_pool(c, &g, err);
		c->result.pooled_logits[c->result.n_pooled_logits++] = g;
		vn_judge_count_pooled_logits(c, c->result.n_pooled_logits - 1);
	}
	return st;
}
