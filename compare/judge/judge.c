/* judge.c: compares one measured checkpoint with its limits. Every check is written as the
 * condition to pass, so that a NaN, an unknown floor or an undefined metric fails. */
#include "compare/judge/count.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/pooled_small.h"
#include "compare/judge/judge.h"
#include "compare/judge/pool_channels.h"

#include <math.h>
#include <stdlib.h>

/* An overflowed floor run gives no floor. */
static bool gives_floor(const vn_measured *m)
{
	return m->has[VN_M_NMSE] && isfinite(m->value[VN_M_NMSE]) && m->value[VN_M_NONFINITE] == 0.0;
}

void vn_judge_floor_set(vn_checkpoint *p, const vn_measured *m)
{
	p->has_floor = gives_floor(m);
	if (p->has_floor && !p->floor)
		p->has_floor = (p->floor = malloc(VN_N_METRICS * sizeof *p->floor)) != NULL;
	for (int i = 0; i < VN_N_METRICS && p->has_floor; i++)
		p->floor[i] = m->has[i] ? m->value[i] : (double)NAN;
}

double vn_judge_floor_sum(vn_metric m, double x, double y)
{
	const vn_metric_kind kind = vn_metric_get(m)->kind;
	return kind == VN_KIND_SQUARES || kind == VN_KIND_DIVERGENCE ? x + y : hypot(x, y);
}

void vn_judge_floor_join(vn_checkpoint *p, const vn_measured *m)
{
	p->has_floor = p->has_floor && gives_floor(m);
	for (int i = 0; i < VN_N_METRICS && p->has_floor; i++)
		if (vn_metric_get((vn_metric)i)->over_floor)
			p->floor[i] = m->has[i] ? vn_judge_floor_sum((vn_metric)i, p->floor[i], m->value[i]) : (double)NAN;
}

/* The checks of one checkpoint: each limit once, plus nonfinite, max_abs, vacuous tensors and an
 * invalid floor, which need no rule. */
typedef struct checks {
	vn_check check[VN_N_FORMS * VN_N_METRICS + 5];
	int      n;
} checks;

static void add_check(checks *list, vn_metric m, vn_form form, const vn_limit *l, double value, const char *note)
{
	vn_check *k = &list->check[list->n++];
	*k = (vn_check) {
		.metric = m,
		.form = form,
		.limit = l->value,
		.value = value,
		.rule = l->rule,
		.line = l->line,
		.note = note,
		.holds = !note && vn_limit_holds(m, form, l->value, value),
	};
	k->value = note ? (double)NAN : vn_limit_subject(m, form, value);
}

/* fp32.yaml's limit for products after the embedding is four times the first; its limit for a
 * divergence is eight times the second. */
#define SUMS_FLOOR 2.5e-11
#define SUMS_KL    1.25e-6

double vn_judge_floor_of_sums(const vn_opened *o, vn_metric m)
{
	if (!o->policy.products)
		return 0.0;
	return vn_metric_get(m)->kind == VN_KIND_SQUARES ? SUMS_FLOOR : m == VN_M_KL_MEAN ? SUMS_KL : 0.0;
}

/* Over many numbers, rounding leaves no common factor in one run and a tiny one in another,
 * so a factor's floor is at least what rounding leaves in a single number: 0.42 units in the
 * last place of 1. */
static double least_floor(const vn_opened *o, const vn_checkpoint *p, vn_metric m)
{
	const int own = vn_policy_digits(o->policy), kept = vn_dtype_digits(p->m.grid);
	return vn_metric_get(m)->kind == VN_KIND_FACTOR ? ldexp(0.42, -(own < kept ? own : kept))
	                                                : vn_judge_floor_of_sums(o, m);
}

/* With a floor of zero the format causes no error here, so any error fails. */
static double over_floor(double value, double floor)
{
	if (floor == 0.0)
		return value == 0.0 ? 0.0 : (double)INFINITY;
	return value / floor;
}

/* The divergence of few rows depends on a few rounded scores, and so does its floor, so their ratio
 * says nothing. In correct runs eight rows are within a factor of 2. */
enum { FEW_ROWS = 8 };

/* The values held against a limit: those of the checkpoint, or of all steps judged with it. */
typedef struct judged_value {
	double value, floor;
	bool   has, has_floor;
	int    steps;
} judged_value;

static judged_value own_or_joint(const vn_result *r, const vn_checkpoint *p, vn_metric m, const vn_pooled_small *pool)
{
	if (pool)
		return (judged_value) { pool->value[m], pool->floor[m], true, true, pool->n };
	const int steps = vn_channel_steps(r, p, m);
	if (steps) /* some floors may be unknown */
		return (judged_value) { p->m.value[m], vn_floor_value(p, m), p->m.has[m], p->has_floor && !isnan(p->floor[m]),
			                    steps };
	if (!vn_metric_get(m)->scores)
		return (judged_value) { p->m.value[m], vn_floor_value(p, m), p->m.has[m], p->has_floor, 0 };
	if (p->pooled_logits < 0)
		return (judged_value) { p->m.value[m], vn_floor_value(p, m), p->m.has[m], p->has_floor && p->rows >= FEW_ROWS,
			                    0 };
	const vn_pooled_logits *logits = &r->pooled_logits[p->pooled_logits];
	return (judged_value) { logits->value[m], logits->floor[m], true, !isnan(logits->floor[m]) && logits->n >= FEW_ROWS,
		                    logits->n };
}

static judged_value value_to_judge(const vn_comparison *c, const vn_checkpoint *p, vn_metric m,
                                   const vn_pooled_small *pool)
{
	judged_value s = own_or_joint(&c->result, p, m, pool);
	if (!isnan(s.floor))
		s.floor = fmax(s.floor, least_floor(&c->opened, p, m));
	return s;
}

/* Below this count, one ratio of independent errors in 10,000 exceeds 4; with 16 numbers, one
 * in 250. A checkpoint with fewer numbers is excused if it passes the limit that applies
 * without a floor. */
enum { TOO_FEW_NUMBERS = 32 };

static bool is_excused(const vn_pooled_small *pool, const vn_checkpoint *p, vn_metric m, const judged_value *s,
                       const vn_limit_set *set)
{
	const vn_limit *cap = &set->limit[VN_WITHOUT_FLOOR][m];
	const int64_t   numbers = pool ? pool->numbers : p->m.n * (s->steps ? s->steps : 1);
	return vn_pooled_small_has(m) && numbers < TOO_FEW_NUMBERS && cap->rule &&
	       vn_limit_holds(m, VN_WITHOUT_FLOOR, cap->value, s->value);
}

/* Converts a limit on a share of rows to one on a number of rows. */
static vn_limit for_rows(const vn_comparison *c, const vn_checkpoint *p, vn_metric m, const vn_limit *l)
{
	vn_limit of = *l;
	int64_t  rows;
	if (m == VN_M_ARGMAX_AGREEMENT && p->scores)
		of.value = vn_judge_count_limit(l->value, vn_judge_count_distinct(c, p, &rows));
	return of;
}

/* Whether this step alone breaks a limit that the steps break together. Measured in floors of all
 * the steps, as they were judged, because its own floor may be tiny by chance. */
static bool breaks_too(const vn_checkpoint *p, vn_metric m, vn_form form, const vn_limit *l, const judged_value *s)
{
	const bool over = form == VN_OVER_FLOOR;

	if (!s->has || !p->m.has[m] || (form == VN_WITHOUT_FLOOR && s->has_floor) ||
	    (over && !(s->has_floor && !isnan(s->floor))))
		return false;
	return !vn_limit_holds(m, form, l->value, over ? over_floor(s->value, s->floor) : s->value) &&
	       !vn_limit_holds(m, form, l->value, over ? over_floor(p->m.value[m], s->floor) : p->m.value[m]);
}

/* Every metric but counts leaves out what is not finite. */
static bool has_no_value(const vn_checkpoint *p, vn_metric m)
{
	return !p->m.finite && vn_metric_get(m)->kind != VN_KIND_COUNT && !vn_metric_get(m)->scores;
}

/* Returns false when the check is made at another step. */
static bool check_metric(const vn_comparison *c, const vn_checkpoint *p, vn_metric m, vn_form form,
                         const vn_limit_set *set, bool has_other, checks *to)
{
	const vn_metric_info  *info = vn_metric_get(m);
	const vn_limit        *l = &set->limit[form][m];
	const bool             own = p->channels < 0 || vn_channel_metric(m) < 0;
	const vn_pooled_small *pool = form == VN_OVER_FLOOR && p->pooled_small >= 0 && vn_pooled_small_has(m) && own
	                                  ? &c->result.pooled_small[p->pooled_small]
	                                  : NULL;
	if (isinf(l->value))
		return true; /* any is within it */
	if (has_no_value(p, m) && (p->pooled_small < 0 || form != VN_OVER_FLOOR))
		return true; /* vn_judge adds one check for all of these */
	if (form == VN_OVER_FLOOR && p->pooled_small >= 0 && !own && vn_channel_steps(&c->result, p, m) == 0)
		return false; /* judged where it is charged: the ratio of few numbers varies by chance */
	if (info->scores && !p->scores) {
		/* Defaults apply to every checkpoint, so a metric of logits is skipped elsewhere. A rule
		 * that names this checkpoint gets a note. */
		if (l->rule->match)
			add_check(to, m, form, l, 0, "this metric exists for logits only");
		return true;
	}
	const judged_value s = value_to_judge(c, p, m, pool);
	const int          worst = info->scores && p->pooled_logits >= 0 ? c->result.pooled_logits[p->pooled_logits].worst
	                           : pool                                ? pool->worst
	                                                                 : -1;
	const double       floors = set->limit[VN_OVER_FLOOR][VN_M_NMSE].value;
	if (pool && pool->worst != p - c->result.checkpoint &&
	    !vn_pooled_small_breaks_by(pool, p->m.value[VN_M_NMSE], isfinite(floors) ? floors : 1))
		return false;
	if (worst >= 0 && &c->result.checkpoint[worst] != p && !breaks_too(p, m, form, l, &s))
		return false; /* nor the limit on a row count, which is no tighter and slow to compute for thousands of steps */
	const vn_limit of = form == VN_OVER_FLOOR ? *l : for_rows(c, p, m, l);
	if (worst >= 0 && &c->result.checkpoint[worst] != p &&
	    (!breaks_too(p, m, form, &of, &s) || is_excused(pool, p, m, &s, set)))
		return false;
	if (form == VN_WITHOUT_FLOOR && s.has_floor)
		return true;
	if (form == VN_OVER_FLOOR && !s.has_floor) {
		if (!has_other)
			add_check(to, m, form, l, 0,
			          p->has_floor && s.steps && !info->scores
			              ? "the floor lacks some of its steps: add a without_floor limit"
			          : p->has_floor ? "too few rows for a ratio: add a without_floor limit"
			                         : "there is no floor: give --model or --floor, or add a without_floor limit");
		return true;
	}
	if (!s.has && p->partial_metrics && m != VN_M_NMSE && m != VN_M_NONFINITE && m != VN_M_DIFFERING)
		return true;
	if (!s.has)
		add_check(to, m, form, l, 0, "not measured");
	else if (form == VN_OVER_FLOOR && isnan(s.floor))
		add_check(to, m, form, l, 0, "the floor lacks this metric");
	else if (form != VN_OVER_FLOOR) {
		double value = s.value;
		if (vn_judge_count_has_luck(m) && !vn_limit_holds(m, form, l->value, value)) {
			const double left = vn_judge_count_factor(c, p, m, value, p->m.value[VN_M_NMSE]);
			value = vn_limit_holds(m, form, l->value, left) ? left : value;
		}
		add_check(to, m, form, &of, value, NULL);
	} else if (vn_limit_holds(m, form, l->value, over_floor(s.value, s.floor)) || !is_excused(pool, p, m, &s, set))
		add_check(to, m, form, l, over_floor(s.value, s.floor), NULL);
	else
		add_check(to, m, VN_WITHOUT_FLOOR, &set->limit[VN_WITHOUT_FLOOR][m], s.value, NULL);
	to->check[to->n - 1].steps = s.steps;
	return true;
}

/* Warns of a limit that rounding to the candidate's format breaks by itself. */
static void doubt_check(vn_comparison *c, const vn_checkpoint *p, const vn_check *k)
{
	if (p->cand < 0)
		return;
	const vn_dtype r = vn_recording_entry(c->opened.ref, p->ref)->dtype,
				   d = vn_recording_entry(c->opened.cand, p->cand)->dtype;
	const int digits = vn_dtype_digits(d);
	if (vn_dtype_digits(r) <= digits || k->form == VN_OVER_FLOOR || !k->rule)
		return;
	const double half = vn_dtype_ulp(d, p->m.absmax[0]) / 2;
	if (k->metric == VN_M_MAX_ABS && k->limit < half)
		vn_lines_once(&c->result.warnings, "", "times",
		              "%s:%d: max_abs %g is too tight for %s: half a ULP of %s at %.3g is %.2g", k->rule->file, k->line,
		              k->limit, p->name, vn_dtype_name(d), p->m.absmax[0], half);
	/* One rounding causes an error of up to 2^-(digits+1), whose square is 0.18 of
	 * that on average. */
	const double one = 0.1 * ldexp(1.0, -2 * (digits + 1));
	if (k->metric == VN_M_NMSE && k->limit < one && p->m.value[VN_M_ULP_MAX] <= 1 && !k->holds)
		vn_lines_once(&c->result.warnings, "", "times",
		              "%s:%d: nmse %g is too tight for %s: rounding to %s alone leaves about %.1g", k->rule->file,
		              k->line, k->limit, p->name, vn_dtype_name(d), 1.8 * one);
}

/* Ids, indices and counts are right or wrong; a relative error cannot tell. This also covers
 * candidates that store them as floats. */
static bool must_be_equal(const vn_opened *o, const vn_checkpoint *p, const vn_limit_set *set)
{
	for (int f = 0; f < VN_N_FORMS; f++)
		if (set->limit[f][VN_M_MAX_ABS].rule || set->limit[f][VN_M_DIFFERING].rule)
			return false;
	return vn_recording_entry(o->ref, p->ref)->dtype == VN_I32;
}

static bool is_not_gathered(const vn_comparison *c, const vn_checkpoint *p)
{
	return p->scores && p->cand >= 0 && c->opened.cand && vn_recording_entry(c->opened.cand, p->cand)->not_gathered &&
	       !(c->request.options->allow & VN_ALLOW_RANKS);
}

const char vn_not_gathered[] = "each rank has only a shard of the vocabulary, and no rank has all of it";

bool vn_judge_fails_ungathered(const vn_checkpoint *p)
{
	bool yes = false;
	for (int i = 0; i < p->n_checks; i++) {
		const vn_check k = vn_check_at(p, i);
		if (!k.holds && k.note != vn_not_gathered)
			return false;
		yes = yes || k.note == vn_not_gathered;
	}
	return p->fails && yes;
}

/* If two are infinitely far outside, the one with a value says more. */
static bool is_worse(const vn_check *k, const vn_check *than)
{
	const double x = vn_check_limit_fraction(k), y = vn_check_limit_fraction(than);
	return x > y || (x == y && than->note && !k->note);
}

vn_status vn_judge(vn_comparison *c, vn_checkpoint *p, vn_error *err)
{
	static const vn_limit none = { NULL, 0.0, 0 };
	vn_limit_set          set;
	bool                  without = false, elsewhere = false;
	checks                list;

	list.n = 0;
	vn_limits_for(c->request.limits, p->name, &set);
	for (int m = 0; m < VN_N_METRICS; m++)
		without = without ||
		          (set.limit[VN_WITHOUT_FLOOR][m].rule && (!vn_metric_get((vn_metric)m)->scores || p->scores));
	if (p->vacuous && !set.permission[VN_PERMIT_CONSTANT])
		add_check(&list, VN_M_NMSE, VN_PLAIN, &none, 0, p->vacuous);
	else if (!p->m.finite && !set.permission[VN_PERMIT_CONSTANT])
		add_check(&list, VN_M_NMSE, VN_PLAIN, &none, 0, "no number is finite on both sides");
	if (p->invalid_floor)
		add_check(&list, VN_M_NMSE, VN_OVER_FLOOR, &none, 0, p->detail ? p->detail : "its floor is not valid");
	if (is_not_gathered(c, p))
		add_check(&list, VN_M_NMSE, VN_PLAIN, &none, 0, vn_not_gathered);
	for (int m = 0; m < VN_N_METRICS; m++)
		for (int f = 0; f < VN_N_FORMS; f++)
			if (set.limit[f][m].rule && !check_metric(c, p, (vn_metric)m, (vn_form)f, &set, without, &list))
				elsewhere = true;
	p->status = list.n || elsewhere ? VN_WITHIN : VN_UNLIMITED;
	if (!set.limit[VN_PLAIN][VN_M_NONFINITE].rule) /* also when a rule says none, which requires a number */
		add_check(&list, VN_M_NONFINITE, VN_PLAIN, &none, p->m.value[VN_M_NONFINITE], NULL);
	if (must_be_equal(&c->opened, p, &set))
		add_check(&list, VN_M_MAX_ABS, VN_PLAIN, &none, p->m.value[VN_M_MAX_ABS], NULL);
	for (int i = 0; i < list.n; i++) {
		const vn_check *k = &list.check[i];
		doubt_check(c, p, k);
		if (k->holds)
			continue;
		if (vn_channel_steps(&c->result, p, k->metric) && k->steps)
			c->result.channel_pool[p->channels].outside = true;
		else if (p->pooled_small >= 0 && k->steps && vn_pooled_small_has(k->metric))
			c->result.pooled_small[p->pooled_small].outside = true;
		p->status = VN_OUTSIDE;
		p->fails = true;
		if (p->worst < 0 || is_worse(k, &list.check[p->worst]))
			p->worst = i;
	}
	return vn_checks_keep(&c->result.terms, p, list.check, list.n, err);
}
