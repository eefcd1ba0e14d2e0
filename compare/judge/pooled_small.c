/* pooled_small.c: judges single-token steps of small tensors together; see vn_pooled_small.
 *
 * In the ratio to the floor, steps play the part of a tensor's rows: sums of squares are added, and
 * the worst step stands for the worst token.
 */
#include "compare/judge/pooled_small.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/count.h"
#include "compare/metrics/average.h"
#include "compare/metrics/tokens.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"

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
	VN_FREED int    *in = vn_alloc((size_t)single, sizeof *in);
	VN_FREED double *x = vn_alloc((size_t)single, sizeof *x);
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
}

typedef struct small_point {
	const char *name;
	int         point;
} small_point;

static bool belongs_to_pool(const vn_opened *o, const vn_checkpoint *p, int64_t width)
{
	if (p->m.n == 0 || !p->has_floor || vn_judge_count_independent(o, p, width) >= VN_SMALL_SAMPLE)
		return false;
	const vn_step *s = vn_recording_step(o->ref, p->step);
	return s && s->rows == 1;
}

VN_ORDER_BY(compare_members, small_point, x->name == y->name ? 0 : strcmp(x->name, y->name),
            VN_ORDER(x->point, y->point))

bool vn_pooled_small_has(vn_metric m)
{
	const vn_metric_info *info = vn_metric_get(m);
	return info->over_floor && !info->scores && info->pool != VN_POOL_NEVER;
}

static void add_step(double *value, const double *of_step, vn_metric m, double numbers)
{
	const vn_metric_pool pool = vn_metric_get(m)->pool;
	if (vn_pooled_small_has(m) && pool == VN_POOL_MEAN)
		value[m] += of_step[m] * numbers;
	else if (vn_pooled_small_has(m) && pool == VN_POOL_MAX)
		value[m] = fmax(value[m], of_step[m]);
}

/* Combines the metrics of all members from those of each, summing in units of `unit`.
 * Returns the index of the worst. */
static int64_t join_members(const vn_checkpoints *points, const small_point *in, int n, bool floor, double unit,
                            vn_squares *row, vn_size *size, double *value)
{
	vn_squares  all = { 0 };
	vn_measured rows = { 0 };
	double      numbers = 0.0;

	for (int m = 0; m < VN_N_METRICS; m++)
		value[m] = vn_pooled_small_has((vn_metric)m) ? 0.0 : (double)NAN;
	for (int i = 0; i < n; i++) {
		const vn_checkpoint *p = &points->of[in[i].point];
		const double        *v = floor ? p->floor : p->m.value, k = (double)p->m.finite, r = p->m.ref_rms / unit,
					 d = v[VN_M_RMSE] / unit;
		row[i] = (vn_squares) { .rr = r * r * k, .cc = r * r * k, .rc = r * r * k, .dd = d * d * k };
		vn_squares_add(&all, &row[i]);
		numbers += k;
		for (int m = 0; m < VN_N_METRICS; m++)
			add_step(value, v, (vn_metric)m, k);
	}
	vn_measure_tokens(row, n, size, &rows);
	value[VN_M_NMSE] = all.dd == 0.0 ? 0.0 : all.dd / all.rr;
	value[VN_M_WORST_CHANNEL_NMSE] = value[VN_M_NMSE]; /* single tokens have no channels; with enough steps
	                                                    * pool_channels.c judges them */
	value[VN_M_WORST_CHANNEL_SCALE] = value[VN_M_SCALE];
	value[VN_M_WORST_TOKEN_NMSE] = rows.value[VN_M_WORST_TOKEN_NMSE];
	value[VN_M_RMSE] = numbers > 0.0 ? unit * sqrt(all.dd / numbers) : 0.0;
	for (int m = 0; m < VN_N_METRICS; m++)
		if (vn_pooled_small_has((vn_metric)m) && vn_metric_get((vn_metric)m)->pool == VN_POOL_MEAN)
			value[m] = numbers > 0.0 ? value[m] / numbers : 0.0;
	return rows.worst_nmse_token;
}

/* row: output of join_members for the candidate. */
static void rank_rows(vn_pooled_small *g, const vn_squares *row)
{
	double dd = 0, rr = 0;

	g->step = vn_alloc((size_t)g->n, sizeof *g->step);
	for (int i = 0; i < g->n; i++)
		g->step[i] = (vn_small_step) { row[i].dd == 0 ? 0 : row[i].dd / row[i].rr, row[i].dd, row[i].rr, 0 };
	qsort(g->step, (size_t)g->n, sizeof *g->step, vn_ascending); /* by nmse */
	for (int i = 0; i < g->n; i++) {
		dd += g->step[i].dd;
		rr += g->step[i].rr;
		g->step[i].below = dd == 0 ? 0 : dd / rr;
	}
}

bool vn_pooled_small_breaks_by(const vn_pooled_small *g, double nmse, double floors)
{
	int kept = 0; /* the fewest that break no limit */

	while (kept < g->n && g->step[kept].below <= floors * g->floor[VN_M_NMSE])
		kept++;
	return kept == 0 || nmse > (1 + 1e-9) * g->step[kept - 1].nmse || nmse >= 2 * g->value[VN_M_NMSE];
}

static void add_pool(vn_checkpoints *all, vn_pools *pools, const small_point *in, int n)
{
	VN_FREED vn_squares *row = vn_alloc((size_t)n, sizeof *row);
	VN_FREED vn_size    *size = vn_alloc((size_t)n, sizeof *size);
	double               unit = 0.0;

	pools->pooled_small = vn_alloc_resized(pools->pooled_small, (size_t)pools->n_pooled_small + 1,
	                                       sizeof *pools->pooled_small);
	vn_pooled_small *g = &pools->pooled_small[pools->n_pooled_small];
	*g = (vn_pooled_small) { .n = n };
	for (int i = 0; i < n; i++) { /* scaled by the largest number, so that no square underflows */
		vn_checkpoint *p = &all->of[in[i].point];
		unit = fmax(unit, fmax(p->m.ref_rms, fmax(p->m.value[VN_M_RMSE], vn_floor_value(p, VN_M_RMSE))));
		p->pooled_small = pools->n_pooled_small;
		g->numbers += p->m.n;
	}
	unit = unit > 0.0 ? unit : 1.0;
	join_members(all, in, n, true, unit, row, size, g->floor);
	g->worst = in[join_members(all, in, n, false, unit, row, size, g->value)].point;
	pools->n_pooled_small++;
	rank_rows(g, row);
}

void vn_pool_small(const vn_opened *o, vn_checkpoints *all, vn_pools *pools)
{
	VN_FREED small_point *in = vn_alloc((size_t)all->n, sizeof *in);
	const int64_t         width = pools->hidden;
	int                   n = 0;

	for (int i = 0; i < all->n; i++)
		if (belongs_to_pool(o, &all->of[i], width))
			in[n++] = (small_point) { all->of[i].name, i };
	qsort(in, (size_t)n, sizeof *in, compare_members);
	for (int from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && strcmp(in[to].name, in[from].name) == 0; to++)
			;
		if (to - from > 1)
			add_pool(all, pools, in + from, to - from);
	}
}
