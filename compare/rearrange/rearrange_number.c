/* rearrange_number.c: see rearranged.h. */
#include "compare/rearrange/rearranged.h"
#include "compare/trial/score.h"
#include "compare/trial/search.h"

#include <math.h>
#include <stdlib.h>

/* ---- one number ------------------------------------------------------------------------------ */

/* Does the checkpoint consist of heads, or was it computed from heads? Elsewhere, a factor that
 * matches a head size is a coincidence. */
static bool about_heads(const vn_case *t)
{
	const vn_plan *p = t->site->plan;
	const vn_point at = p->value[t->site->target].point;
	const char    *axes = t->site->axes;

	return vn_axes_find(axes, "head") >= 0 || vn_axes_find(axes, "kv_head") >= 0 || at == VN_POINT_ATTN_OUT ||
	       at == VN_POINT_C_ATTN;
}

/* By how much a measured factor may be off: four standard errors of the fit, and half a rounding of
 * the number that was multiplied by, which may be a table in the candidate's format. */
static double uncertainty(const vn_rearranged *r, double by, double xx)
{
	const int stored = vn_dtype_digits(r->like->dtype);
	const int ran = vn_dtype_digits(r->t->site->plan ? r->t->opened->policy.storage : r->t->format);
	double    rest = 0;

	for (int64_t i = 0; i < r->n; i++)
		if (isfinite(r->own[i]) && isfinite(r->cand[i]))
			rest += (r->cand[i] - by * r->own[i]) * (r->cand[i] - by * r->own[i]);
	return 4 * sqrt(rest / xx / (double)r->n) + ldexp(fabs(by), -1 - (stored < ran ? stored : ran));
}

/* The nearest factor made of this model's sizes, or power of two, if x is near enough. within: by
 * how much x may be off. *name: its vn_factor_name; 0: none. */
static double near_named(const vn_case *t, double x, double within, int *name)
{
	const vn_plan *p = t->site->plan;
	double         K = 0, D = 0, group = 0;

	for (int i = 0; p && about_heads(t) && i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_ATTENTION) {
			K = p->node[i].c.attention.head_dim;
			group = (double)p->node[i].c.attention.heads / p->node[i].c.attention.kv_heads;
			break;
		}
	for (int i = 0; p && i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_EMBED)
			D = p->value[p->node[i].out[0]].size[1];
	/* clang-format off */
	const struct { double x; vn_factor_name name; } known[] = {
		{ 2, VN_PLAIN_FACTOR }, { 0.5, VN_PLAIN_FACTOR }, { 4, VN_PLAIN_FACTOR }, { 0.25, VN_PLAIN_FACTOR },
		  { 8, VN_PLAIN_FACTOR }, { 0.125, VN_PLAIN_FACTOR },
		{ -1, VN_PLAIN_FACTOR }, { K, VN_HEAD_WIDTH }, { 1 / K, VN_OVER_HEAD_WIDTH }, { sqrt(K), VN_ROOT_HEAD_WIDTH },
		  { 1 / sqrt(K), VN_OVER_ROOT_HEAD_WIDTH },
		{ D, VN_MODEL_WIDTH }, { 1 / D, VN_OVER_MODEL_WIDTH }, { sqrt(D), VN_ROOT_MODEL_WIDTH },
		  { 1 / sqrt(D), VN_OVER_ROOT_MODEL_WIDTH },
		{ sqrt(D / K), VN_ROOT_MODEL_OVER_HEAD }, { sqrt(K / D), VN_ROOT_HEAD_OVER_MODEL }, { group, VN_QUERY_HEADS },
		  { 1 / group, VN_OVER_QUERY_HEADS },
		{ 127.0 / 128, VN_127_OVER_128 }, { 128.0 / 127, VN_128_OVER_127 },
		  { p ? 1.0 / (vn_plan_last_layer(p) + 2) : 0, VN_OVER_LAYERS_AND_ONE },
		{ 1.4142135623730951, VN_ROOT_2 }, { 0.7071067811865476, VN_OVER_ROOT_2 },
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (isfinite(known[i].x) && known[i].x != 1 && fabs(x / known[i].x - 1) < 2e-3 &&
		    fabs(x - known[i].x) <= within + 1e-6 * fabs(x)) {
			*name = (int)known[i].name;
			return known[i].x;
		}
	*name = VN_NO_NAME;
	return x;
}

/* Is the factor a mistake of its own at this point: a temperature of the logits, ranks added too
 * often or averaged? Then sets the finding and its number in h. */
static bool round_number(const vn_case *t, double by, vn_trial *h)
{
	const vn_plan *p = t->site->plan;
	const vn_point at = p ? p->value[t->site->target].point : VN_N_POINTS;
	const double   over = 1 / by, plain = vn_in_digits(over, 3), ranks = round(by > 1 ? by : over);

	if (vn_point_is_logits(at) && by > 0) {
		const double tau = fabs(over / plain - 1) < 2e-4 ? plain : over;
		h->applied.result.number = 1 / tau;
		h->finding = VN_FINDING_TEMPERATURE;
		return true;
	}
	if ((at != VN_POINT_ATTN_OUT && at != VN_POINT_DOWN_PROJ) || !(ranks >= 2 && ranks <= 1024) ||
	    !(fabs((by > 1 ? by : over) / ranks - 1) < 2e-3))
		return false;
	h->applied.result.number = by > 1 ? ranks : 1 / ranks;
	h->finding = by > 1 ? VN_FINDING_SUM_TIMES : VN_FINDING_AVERAGE;
	return true;
}

/* Everything times `times`, plus `plus`. The errors of other correct implementations, which are
 * absolute in the largest element alone, are multiplied too. */
static void judge_line(vn_rearranged *r, double times, double plus, vn_trial *h)
{
	vn_replayed allowed = r->t->reference_variants;

	for (int64_t i = 0; i < r->n; i++) {
		r->a[i] = times * r->own[i] + plus;
		r->b[i] = times * r->fine[i] + plus;
	}
	allowed.floor_max *= fabs(times);
	vn_rearranged_judge(r, plus == 0 ? &allowed : NULL, h);
}

static void try_factor(vn_rearranged *r)
{
	vn_trial own = { 0 };
	double   xy = 0, xx = 0, exact;
	int      name;

	for (int64_t i = 0; i < r->n; i++)
		if (isfinite(r->own[i]) && isfinite(r->cand[i])) {
			xy += r->own[i] * r->cand[i];
			xx += r->own[i] * r->own[i];
		}
	if (!(xx > 0))
		return;
	const double by = xy / xx;
	if (round_number(r->t, by, &own)) {
		judge_line(r, own.applied.result.number, 0, &own);
		if (vn_case_fits(r->t, &own))
			return;
	}
	const double within = uncertainty(r, by, xx);
	exact = near_named(r->t, by, within, &name);
	for (int exactly = name != VN_NO_NAME; exactly >= 0; exactly--) {
		vn_trial h = { .finding = VN_FINDING_FACTOR,
			           .applied.result = { .number = exactly ? exact : by,
			                               .factor = exactly ? name : VN_NO_NAME,
			                               .measured = by,
			                               .within = within } };
		judge_line(r, h.applied.result.number, 0, &h);
		if (exactly && vn_case_fits(r->t, &h))
			break; /* a person wrote that number, so it is not fitted */
	}
}

static void try_offset(vn_rearranged *r)
{
	vn_trial h = { .finding = VN_FINDING_ADDEND };
	double   sum = 0;
	int64_t  n = 0;

	for (int64_t i = 0; i < r->n; i++)
		if (isfinite(r->own[i]) && isfinite(r->cand[i])) {
			sum += r->cand[i] - r->own[i];
			n++;
		}
	if (!n || sum == 0)
		return;
	h.applied.result.number = sum / (double)n;
	judge_line(r, 1, sum / (double)n, &h);
}

/* Tries that all numbers above, below or beyond a limit in size were clamped to it. At least two
 * must be clamped. */
static void try_clamp(vn_rearranged *r)
{
	double low = (double)INFINITY, high = -(double)INFINITY, own_low = low, own_high = high;
	int    at_low = 0, at_high = 0;

	for (int64_t i = 0; i < r->n; i++) {
		if (!isfinite(r->own[i]) || !isfinite(r->cand[i]))
			return;
		low = fmin(low, r->cand[i]);
		high = fmax(high, r->cand[i]);
		own_low = fmin(own_low, r->own[i]);
		own_high = fmax(own_high, r->own[i]);
	}
	for (int64_t i = 0; i < r->n; i++) {
		at_low += r->cand[i] == low;
		at_high += r->cand[i] == high;
	}
	const bool above = high < own_high && at_high > 1, below = low > own_low && at_low > 1;
	if ((!above && !below) || (above && below && low != -high))
		return;
	for (int64_t i = 0; i < r->n; i++) {
		r->a[i] = fmin(fmax(r->own[i], below ? low : -(double)INFINITY), above ? high : (double)INFINITY);
		r->b[i] = fmin(fmax(r->fine[i], below ? low : -(double)INFINITY), above ? high : (double)INFINITY);
	}
	vn_trial h = { .finding = VN_FINDING_CLAMPED,
		           .applied.result = { .number = above ? high : low,
		                               .clamp = above && below ? VN_CLAMP_BOTH
		                                        : above        ? VN_CLAMP_ABOVE
		                                                       : VN_CLAMP_BELOW } };
	vn_rearranged_judge(r, NULL, &h);
}

void vn_rearrange_one_value(vn_rearranged *r)
{
	vn_trial h = { .finding = r->cand[0] == 0 ? VN_FINDING_ZERO : VN_FINDING_ONE_VALUE,
		           .applied.result.number = r->cand[0] };

	for (int64_t i = 0; i < r->n; i++) {
		if (!(r->cand[i] == r->cand[0]))
			return;
		r->a[i] = r->b[i] = r->cand[0];
	}
	vn_rearranged_judge(r, NULL, &h);
}

/* ---- a cap: logits c tanh(x / c) ------------------------------------------------------------- */

enum { ASKED = 1 << 16 }; /* about how many logits the cap is read off */
enum { GRID = 64, FINER = 5, DIGITS = 4 };
#define WIDEST     100.0 /* times the largest logit; a wider cap changes nothing */
#define CAP_LEAVES 0.1   /* the most that the best cap may leave, of the error */

typedef struct curve {
	const double *own, *cand; /* (n): expected, found */
	int64_t       n;
} curve;

/* The squared error that is left with this cap. */
static double error_of(void *of, double c)
{
	const curve *x = of;
	double       sum = 0;

	for (int64_t i = 0; i < x->n; i += 1 + x->n / ASKED) {
		const double d = c * tanh(x->own[i] / c) - x->cand[i];
		sum += d * d;
	}
	return sum;
}

/* The cap that leaves the least error. 0: every cap leaves too much. */
static double best_cap(curve *x)
{
	double whole = 0, top = 0;

	for (int64_t i = 0; i < x->n; i += 1 + x->n / ASKED)
		whole += (x->own[i] - x->cand[i]) * (x->own[i] - x->cand[i]);
	for (int64_t i = 0; i < x->n; i++)
		top = fabs(x->cand[i]) > top ? fabs(x->cand[i]) : top;
	if (!(top > 0))
		return 0;
	const vn_least least = vn_search_grid(error_of, x, (vn_range) { top, WIDEST * top, GRID, false }, FINER, GRID);
	return least.error < CAP_LEAVES * whole ? least.x : 0;
}

static void try_cap(vn_rearranged *r)
{
	const vn_plan   *p = r->t->site->plan;
	curve            x = { r->own, r->cand, r->n };
	const bool       logits = p && vn_point_is_logits(p->value[r->t->site->target].point);
	const double     c = logits && !r->t->x->unmodified.residual.bad ? best_cap(&x) : 0;
	vn_round_numbers written = { .x = c, .most = DIGITS };
	double           cap;

	while (c > 0 && !vn_case_answered(r->t) && vn_next_round_number(&written, &cap)) {
		vn_trial h = { .finding = VN_FINDING_CAP, .applied.result.number = cap };
		for (int64_t i = 0; i < r->n; i++) {
			r->a[i] = cap * tanh(r->own[i] / cap);
			r->b[i] = cap * tanh(r->fine[i] / cap);
		}
		vn_rearranged_judge(r, NULL, &h);
	}
}

void vn_rearrange_numbers(vn_rearranged *r)
{

	try_clamp(r);
	try_factor(r);
	try_cap(r);
	try_offset(r);
}
