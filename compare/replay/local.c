/* local.c: see local.h. */
#include "compare/replay/local.h"

#include <math.h>

/* Part of the square of half an ulp of 1 that one rounding to a format leaves as nmse: 4.3e-8 for
 * f16. Sums in float32 leave some hundred times more in
 * any order, and no fault is this small. */
#define ROUNDING 0.18
#define SUMS     400

static double least_floor(vn_dtype storage)
{
	const double half = ldexp(1, -vn_dtype_digits(storage) - 1);
	return ROUNDING * half * half * (vn_dtype_digits(storage) > 10 ? SUMS : 1);
}

/* Half an ulp of the largest number: at least half an ulp of 1, times that number. */
static double least_element(double least, double largest)
{
	return sqrt(least / ROUNDING) * largest;
}

/* Counts positions where exactly one of the two is finite. */
static int64_t one_side_bad(const vn_measured *m)
{
	return 2 * (m->n - m->finite) - (m->nan[0] + m->inf[0] + m->nan[1] + m->inf[1]);
}

/* 0 where there is nothing to compare. */
static double value_of(const vn_measured *m, vn_metric which)
{
	return m->finite ? m->value[which] : 0.0;
}

static bool in_float32(const vn_node *n, int made)
{
	int slot = 0; /* also true for other names of the first output */
	for (int k = 0; k < n->n_out; k++)
		slot = n->out[k] == made ? k : slot;
	return vn_op_get(n->op)->in_float32 >> slot & 1;
}

vn_dtype vn_local_format(const vn_node *n, int made, int span, vn_dtype storage)
{
	return storage == VN_F64 && (span > 1 || in_float32(n, made)) ? VN_F32 : storage;
}

vn_status vn_local_measure(const vn_local_tensors *x, vn_replayed *l, vn_measured *given, vn_error *err)
{
	/* in one pass: starting threads three times costs more than a small tensor */
	const vn_tensor   *pair[][2] = { { x->a, x->c }, { x->b, x->a }, { x->r, x->b } };
	vn_job             job[3];
	const int          n = x->r ? 3 : 2;
	const vn_measured *local = &job[0].m, *floor = &job[1].m;
	const double       least = least_floor(x->storage);
	for (int i = 0; i < n; i++)
		job[i] = (vn_job) {
			.ref = *pair[i][0], .cand = *pair[i][1], .axes = x->axes, .mapped = x->mapped, .brief = true
		};
	const vn_status st = vn_measure_many(job, n, x->threads, err);

	if (st)
		return st;
	if (x->r)
		*given = job[2].m;
	*l = (vn_replayed) {
		.local = value_of(local, VN_M_NMSE),
		.floor = fmax(value_of(floor, VN_M_NMSE), least),
		.local_token = value_of(local, VN_M_WORST_TOKEN_NMSE),
		.floor_token = fmax(value_of(floor, VN_M_WORST_TOKEN_NMSE), least),
		.local_max = value_of(local, VN_M_MAX_ABS),
		.floor_max = fmax(value_of(floor, VN_M_MAX_ABS), least_element(least, local->absmax[0])),
		.bad = one_side_bad(local),
		.not_measured = !local->finite,
		.charged_to = -1,
	};
	return VN_OK;
}

vn_status vn_local_other(const vn_tensor *z, const vn_tensor *a, const char *axes, int threads, vn_replayed *most,
                         vn_error *err)
{
	vn_measured     m;
	const vn_status st = vn_measure_brief(a, z, axes, threads, &m, err);

	if (st)
		return st;
	most->floor = fmax(most->floor, value_of(&m, VN_M_NMSE));
	most->floor_token = fmax(most->floor_token, value_of(&m, VN_M_WORST_TOKEN_NMSE));
	most->floor_max = fmax(most->floor_max, value_of(&m, VN_M_MAX_ABS));
	return VN_OK;
}

vn_status vn_local_alone(const vn_tensor *z, const vn_tensor *c, const char *axes, int threads, vn_replayed *l,
                         vn_error *err)
{
	const int64_t   n = vn_shape_count(&c->shape);
	vn_replayed     other = *l;
	vn_measured     m;
	const vn_status st = vn_measure_brief(z, c, axes, threads, &m, err);

	if (st)
		return st;
	other.local = value_of(&m, VN_M_NMSE);
	other.local_token = value_of(&m, VN_M_WORST_TOKEN_NMSE);
	other.local_max = value_of(&m, VN_M_MAX_ABS);
	other.bad = one_side_bad(&m);
	other.not_measured = !m.finite;
	if (vn_local_limit_fraction(&other, n) < vn_local_limit_fraction(l, n))
		*l = other;
	return VN_OK;
}

void vn_local_allow(vn_replayed *l, const vn_replayed *most)
{
	l->floor += most->floor;
	l->floor_token += most->floor_token;
	l->floor_max = hypot(l->floor_max, most->floor_max);
}

double vn_local_ratio(const vn_replayed *l)
{
	return l->bad || l->other_ids ? (double)INFINITY : l->local / l->floor;
}

static double square_of(double x)
{
	return x * x;
}

double vn_local_worst(const vn_replayed *l)
{
	/* if the floor is all zeros, only an error of zero is within it */
	const double token = l->local_token > 0 ? l->local_token / l->floor_token : 0;
	const double most = l->local_max > 0 ? square_of(l->local_max / l->floor_max) : 0;
	return token > most ? token : most;
}

double vn_local_slack(int64_t n)
{
	return n < VN_SMALL_SAMPLE ? 4 : 1;
}

double vn_local_slack_of(const vn_replayed *l, int64_t n)
{
	return l->slack > 0 ? l->slack : l->not_widened ? 1 : vn_local_slack(n);
}

/* Wilson and Hilferty: the cube root of a mean of squares is nearly normal. */
double vn_local_chance(double freedom)
{
	const double once = 4.26, variance = 2 / (9 * freedom), root = 1 - variance + once * sqrt(variance);
	return root * root * root;
}

void vn_local_set_slack(vn_replayed *l, double freedom)
{
	l->slack = VN_SPAN_LIMIT / VN_LOCAL_LIMIT * (isinf(freedom) ? 1 : vn_local_chance(freedom));
}

double vn_local_least_seen(const vn_replayed *l)
{
	return sqrt(l->slack * VN_LOCAL_LIMIT * l->floor);
}

void vn_local_take_floor(vn_replayed *l, const vn_span_floor *f, vn_dtype storage)
{
	const double least = least_floor(storage);

	l->floor = fmax(f->nmse, least);
	l->floor_token = fmax(f->token, least);
	l->floor_max = fmax(f->max, least_element(least, f->largest));
	vn_local_set_slack(l, f->freedom);
	l->independent_numbers = (int64_t)fmax(1, round(f->freedom));
}

double vn_local_limit_fraction(const vn_replayed *l, int64_t n)
{
	const double all = vn_local_ratio(l) / VN_LOCAL_LIMIT, peak = vn_local_worst(l) / VN_PEAK_LIMIT;
	return (all > peak || isnan(all) ? all : peak) / vn_local_slack_of(l, n);
}

static bool is_measured(const vn_checkpoint *p)
{
	return p->replayed && !p->replay.not_measured;
}

double vn_local_nmse(const vn_checkpoint *p)
{
	return is_measured(p) ? p->replay.local : (double)NAN;
}

double vn_local_over_floor(const vn_checkpoint *p)
{
	return is_measured(p) || (p->replayed && p->replay.bad) ? vn_local_ratio(&p->replay) : (double)NAN;
}

double vn_local_peak(const vn_checkpoint *p)
{
	return is_measured(p) ? vn_local_worst(&p->replay) : (double)NAN;
}

double vn_local_token(const vn_checkpoint *p)
{
	return is_measured(p) ? p->replay.local_token / p->replay.floor_token : (double)NAN;
}

double vn_local_element(const vn_checkpoint *p)
{
	return is_measured(p) ? p->replay.local_max / p->replay.floor_max : (double)NAN;
}

double vn_local_shown(const vn_checkpoint *p)
{
	const double all = vn_local_over_floor(p), peak = vn_local_peak(p);
	return peak > all ? peak : all;
}

bool vn_local_judges(const vn_checkpoint *p)
{
	return p->replayed && !p->replay.another_order && (p->replay.span <= VN_SPAN_CLEARED || p->replay.slack > 0);
}

bool vn_local_beyond(const vn_checkpoint *p)
{
	return vn_local_judges(p) && !(vn_local_limit_fraction(&p->replay, p->replay.independent_numbers) <= 1);
}

bool vn_local_is_order(const vn_checkpoint *p)
{
	return p->replay.columns != VN_COLUMNS_SAME && !p->replay.wrong_in_order;
}
