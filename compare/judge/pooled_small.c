/* pooled_small.c: judges single-token steps of small tensors together; see vn_pooled_small.
 *
 * In the ratio to the floor, steps play the part of a tensor's rows: sums of squares are added, and
 * the worst step stands for the worst token.
 */
#include "compare/judge/count.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/pooled_small.h"
#include "compare/metrics/average.h"
#include "compare/metrics/tokens.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	vn_squares *row = vn_alloc((size_t)n, sizeof *row);
	vn_size    *size = vn_alloc((size_t)n, sizeof *size);
	double      unit = 0.0;

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
	free(size);
	free(row);
}

void vn_pool_small(const vn_opened *o, vn_checkpoints *all, vn_pools *pools)
{
	small_point  *in = vn_alloc((size_t)all->n, sizeof *in);
	const int64_t width = pools->hidden;
	int           n = 0;

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
	free(in);
}
