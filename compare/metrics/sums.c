/* sums.c: the sums of units joined, and the metrics they come to; see sums.h. */
#include "compare/metrics/average.h"
#include "compare/metrics/sums.h"

#include <math.h>
#include <string.h>

void vn_sums_join(vn_sums *a, const vn_sums *b)
{
	vn_squares_add(&a->sq, &b->sq);
	a->rel += b->rel;
	a->max_rel = fmax(a->max_rel, b->max_rel);
	a->max_ulp = fmax(a->max_ulp, b->max_ulp);
	a->max_r = fmax(a->max_r, b->max_r);
	a->max_c = fmax(a->max_c, b->max_c);
	if (b->max_block >= 0 &&
	    (a->max_block < 0 || b->max_d > a->max_d || (b->max_d == a->max_d && b->max_block < a->max_block))) {
		a->max_d = b->max_d;
		a->max_block = b->max_block;
	}
	if (b->bad_at >= 0 && (a->bad_at < 0 || b->bad_at < a->bad_at))
		a->bad_at = b->bad_at;
	if (b->differs_at >= 0 && (a->differs_at < 0 || b->differs_at < a->differs_at))
		a->differs_at = b->differs_at;
	a->differing += b->differing;
	a->finite += b->finite;
	a->bad += b->bad;
	a->masked += b->masked;
	for (int i = 0; i < 2; i++) {
		a->nan[i] += b->nan[i];
		a->inf[i] += b->inf[i];
	}
}

static double ulp_percentile(const uint64_t count[VN_ULP_BUCKETS], int64_t n, double share)
{
	const int64_t rank = vn_quantile_index(n, share);
	int64_t       below = 0;
	for (int i = 0; i < VN_ULP_BUCKETS; i++)
		if ((below += (int64_t)count[i]) > rank)
			return vn_ulp_bucket_top(i);
	return 0.0;
}

static void set_metric(vn_measured *m, vn_metric which, double value)
{
	m->has[which] = true;
	m->value[which] = value;
}

/* Finds the first position in the block with the largest difference. */
void vn_metric_find_max(const vn_pair *p, int64_t at, vn_measured *m)
{
	double       x[2][VN_BLOCK], max = -1;
	const size_t n = (size_t)(p->n - at < VN_BLOCK ? p->n - at : VN_BLOCK);
	vn_block_double(p, 0, at, n, x[0]);
	vn_block_double(p, 1, at, n, x[1]);
	for (size_t i = 0; i < n; i++) {
		const double d = fabs(x[1][i] - x[0][i]);
		if (isfinite(x[0][i]) && isfinite(x[1][i]) && d > max) {
			max = d;
			m->at = at + (int64_t)i;
			m->ref_at = x[0][i];
			m->cand_at = x[1][i];
		}
	}
	if (max >= 0)
		set_metric(m, VN_M_MAX_ABS, max);
}

vn_measured vn_measured_none(void)
{
	return (vn_measured) { .at = -1,
		                   .bad_at = -1,
		                   .differs_at = -1,
		                   .worst_token = -1,
		                   .worst_nmse_token = -1,
		                   .worst_nmse_channel = -1,
		                   .worst_scale_channel = -1,
		                   .worst_row = -1 };
}

void vn_sums_finish(const vn_sums *s, const vn_pair *p, const uint64_t count[VN_ULP_BUCKETS], vn_measured *m)
{
	*m = vn_measured_none();
	const double      n = s->finite > 0 ? (double)s->finite : 1.0;
	const vn_squares *q = &s->sq;
	set_metric(m, VN_M_COSINE, vn_cosine(q));
	set_metric(m, VN_M_NMSE, vn_nmse(q));
	set_metric(m, VN_M_RMSE, ldexp(sqrt(q->dd / n), q->scale[2]));
	set_metric(m, VN_M_MEAN_ABS, ldexp(q->ad / n, q->scale[2]));
	set_metric(m, VN_M_NORM_RATIO,
	           q->rr == 0.0 && q->cc == 0.0 ? 1.0 : ldexp(sqrt(q->cc) / sqrt(q->rr), q->scale[1] - q->scale[0]));
	set_metric(m, VN_M_SCALE, vn_scale(q, n));
	set_metric(m, VN_M_WORST_TOKEN_COSINE, m->value[VN_M_COSINE]);
	set_metric(m, VN_M_WORST_TOKEN_NMSE, m->value[VN_M_NMSE]);
	if (!p->brief) {
		set_metric(m, VN_M_MAX_REL, s->max_rel);
		set_metric(m, VN_M_MEAN_REL, s->rel / n);
		set_metric(m, VN_M_WORST_CHANNEL_NMSE, m->value[VN_M_NMSE]);
		set_metric(m, VN_M_WORST_CHANNEL_SCALE, m->value[VN_M_SCALE]);
		set_metric(m, VN_M_ULP_P50, fmin(ulp_percentile(count, s->finite, 0.50), s->max_ulp));
		set_metric(m, VN_M_ULP_P99, fmin(ulp_percentile(count, s->finite, 0.99), s->max_ulp));
		set_metric(m, VN_M_ULP_MAX, s->max_ulp);
	}
	/* If no pair is finite, nothing was compared. */
	set_metric(m, VN_M_NONFINITE, (double)(s->finite > 0 ? s->bad : p->n));
	set_metric(m, VN_M_HEADROOM, s->max_c / vn_dtype_max(p->dtype[1]));
	set_metric(m, VN_M_MAX_ABS, 0.0);
	if (p->bits) {
		set_metric(m, VN_M_DIFFERING, (double)s->differing);
		m->differs_at = s->differs_at;
	}
	m->ref_rms = ldexp(sqrt(q->rr / n), q->scale[0]);
	m->n = p->n;
	m->finite = s->finite;
	m->masked = s->masked;
	m->bad_at = s->finite > 0 ? s->bad_at : 0;
	m->absmax[0] = s->max_r;
	m->absmax[1] = s->max_c;
	m->grid = p->grid;
	memcpy(m->nan, s->nan, sizeof m->nan);
	memcpy(m->inf, s->inf, sizeof m->inf);
}
