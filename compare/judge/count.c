/* count.c: see count.h. */
#include "compare/judge/count.h"
#include "compare/metrics/channels.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ONE_OF 1e-3

enum { MOST = 1 << 16 }; /* most numbers of a checkpoint that are read again */

int vn_judge_count_ids(const int32_t *id, int64_t n)
{
	int32_t seen[VN_CHANNEL_FEWEST];
	int     k = 0;
	for (int64_t i = 0; i < n && k < VN_CHANNEL_FEWEST; i++) {
		int old = 0;
		while (old < k && seen[old] != id[i])
			old++;
		if (old == k)
			seen[k++] = id[i];
	}
	return k;
}

VN_ORDER_BY(compare_ids, int32_t, VN_ORDER(*x, *y))

/* Writes the ids of a checkpoint's rows to id (NULL: only counts them) and returns their number. */
static int64_t ids_of(const vn_opened *o, const vn_checkpoint *p, int32_t *id)
{
	const int32_t *all, *at;
	const int64_t  n = vn_recording_tokens(o->ref, &all, &at);
	const vn_step *s = vn_recording_step(o->ref, p->step);
	if (!s || s->rows <= 0 || s->position + s->first_row < 0 || s->position + s->first_row + s->rows > n)
		return 0;
	const int64_t from = vn_entry_last_alone(vn_recording_entry(o->ref, p->ref), s->rows) ? s->rows - 1 : 0;
	for (int64_t i = from; id && i < s->rows; i++)
		id[i - from] = all[s->position + s->first_row + i];
	return s->rows - from;
}

/* Collects the ids of those of `all` checkpoints that are in this pool. */
static int64_t collect_ids(const vn_opened *o, const vn_checkpoint *p, int all, int pool, int32_t *id)
{
	int64_t n = 0;
	for (int i = 0; i < all; i++)
		if (p[i].pooled_logits == pool)
			n += ids_of(o, &p[i], id ? id + n : NULL);
	return n;
}

static int64_t distinct_of(const vn_opened *o, const vn_checkpoint *p, int all, int pool, int64_t *rows)
{
	const int64_t n = collect_ids(o, p, all, pool, NULL);
	int64_t       distinct = 1;

	*rows = n > 0 ? n : 1;
	if (n <= 0)
		return 1; /* then no allowance is made */
	VN_FREED int32_t *id = vn_alloc((size_t)n, sizeof *id);
	collect_ids(o, p, all, pool, id);
	qsort(id, (size_t)n, sizeof *id, compare_ids);
	for (int64_t i = 1; i < n; i++)
		distinct += id[i] != id[i - 1];
	return distinct;
}

int64_t vn_judge_count_distinct(const vn_opened *o, const vn_pools *pools, const vn_checkpoint *p, int64_t *rows)
{
	if (p->pooled_logits < 0)
		return distinct_of(o, p, 1, -1, rows); /* it need not be one of c->the checkpoints.of */
	*rows = pools->pooled_logits[p->pooled_logits].rows;
	return pools->pooled_logits[p->pooled_logits].distinct;
}

void vn_judge_count_pooled_logits(const vn_opened *o, const vn_checkpoints *all, vn_pools *pools, int pool)
{
	vn_pooled_logits *g = &pools->pooled_logits[pool];
	g->distinct = distinct_of(o, &all->of[g->first], g->last - g->first + 1, pool, &g->rows);
}

int64_t vn_judge_count_allowed(double limit, int64_t n)
{
	const double q = 1 - limit;
	double       rest = 1; /* of more than k */
	if (!(q > 0))
		return 0;
	if (q >= 1)
		return n;
	for (int64_t k = 0; k < n; k++) {
		const double x = (double)k, m = (double)n;
		rest -= exp(lgamma(m + 1) - lgamma(x + 1) - lgamma(m - x + 1) + x * log(q) + (m - x) * log1p(-q));
		if (rest <= ONE_OF)
			return k;
	}
	return n;
}

double vn_judge_count_limit(double limit, int64_t n)
{
	return n > 0 ? fmin(limit, 1 - (double)vn_judge_count_allowed(limit, n) / (double)n) : limit;
}

static int token_axes(const char *axes)
{
	int n = 0;
	for (const char *p = axes; (p = strstr(p, "token")); p += 5)
		n++;
	return n;
}

void vn_judge_set_hidden(const vn_opened *o, vn_pools *pools)
{
	for (int i = 0; i < vn_recording_count(o->ref); i++) {
		const vn_entry *e = vn_recording_entry(o->ref, i);
		const int       axis = vn_axes_find(vn_entry_axes(e), "hidden");
		if (axis >= 0 && axis < e->shape.rank) {
			pools->hidden = e->shape.dim[axis];
			return;
		}
	}
}

int64_t vn_judge_count_independent(const vn_opened *o, const vn_checkpoint *p, int64_t width)
{
	const vn_entry *e = vn_recording_entry(o->ref, p->ref);
	const int       axis = vn_axes_find(vn_entry_axes(e), "token");
	const int64_t   own = axis >= 0 && axis < e->shape.rank && width > 0 ? e->shape.dim[axis] * width : p->m.n;
	return own < p->m.n ? own : p->m.n;
}

double vn_judge_count_carrying(const vn_opened *o, const vn_checkpoint *p)
{
	double    rr = 0, r4 = 0;
	vn_error  err;
	vn_tensor t;

	if (p->m.n > MOST || vn_entry_tensor(o->ref, p->ref, &t, &err))
		return (double)p->m.finite;
	double *x = vn_alloc((size_t)p->m.n, sizeof *x);
	vn_to_f64(x, t.data, t.dtype, (size_t)p->m.n);
	for (int64_t i = 0; i < p->m.n; i++)
		if (isfinite(x[i])) {
			const double r = x[i] / (p->m.absmax[0] > 0 ? p->m.absmax[0] : 1);
			rr += r * r;
			r4 += r * r * r * r;
		}
	free(x);
	vn_recording_release(o->ref, p->ref);
	return r4 > 0 ? rr * rr / r4 : (double)p->m.finite;
}

bool vn_judge_count_has_luck(vn_metric m)
{
	const vn_metric_info *info = vn_metric_get(m);
	return info->kind == VN_KIND_NORM || (info->kind == VN_KIND_FACTOR && !info->worst);
}

double vn_judge_count_factor(const vn_opened *o, const vn_pools *pools, const vn_checkpoint *p, vn_metric m,
                             double value, double nmse)
{
	const bool   norm = vn_metric_get(m)->kind == VN_KIND_NORM;
	const double n = (double)p->m.finite, far = norm ? fabs(value - 1) : value;
	const double one = ldexp(0.42, -vn_dtype_digits(p->m.grid)),
				 rest = fmax(nmse - far * far, one * one); /* the error of one rounding */
	int64_t      rows;
	const double share = (double)vn_judge_count_distinct(o, pools, p, &rows) / (double)rows;
	double       fewer = fmin(n * pow(share, token_axes(vn_entry_axes(vn_recording_entry(o->ref, p->ref)))),
	                          vn_judge_count_carrying(o, p));

	fewer = fmin(fewer, (double)vn_judge_count_independent(o, p, pools->hidden));
	/* The factor itself takes one degree of freedom. The allowance for n numbers is already
	 * subtracted from the scale; nothing is subtracted from a norm, to which the rest adds. */
	const double error = 6 * sqrt(rest / fmax(fewer - 1, 1.0 / 64));
	const double luck = norm ? error + rest / 2 : error - 6 * sqrt(rest / n);
	double       left = fmax(0, far - fmax(luck, 0));
	if (!norm)
		left = fmax(left, fmin(p->m.middle, far)); /* part that a small number of values cannot explain */
	return norm ? 1 + left : left;
}
