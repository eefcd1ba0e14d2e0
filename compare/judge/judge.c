/* judge.c: compares one measured checkpoint with its limits. Every check is written as the
 * condition to pass, so that a NaN, an unknown floor or an undefined metric fails. */
#include "compare/judge/count.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/pooled_small.h"
#include "compare/judge/judge.h"
#include "compare/judge/pool_channels.h"

#include "libref/base/alloc.h"

#include <math.h>

/* An overflowed floor run gives no floor. */
static bool gives_floor(const vn_measured *m)
{
	return m->has[VN_M_NMSE] && isfinite(m->value[VN_M_NMSE]) && m->value[VN_M_NONFINITE] == 0.0;
}

void vn_judge_floor_set(vn_checkpoint *p, const vn_measured *m)
{
	p->has_floor = gives_floor(m);
	if (p->has_floor && !p->floor)
		p->floor = vn_alloc(VN_N_METRICS, sizeof *p->floor);
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

static judged_value own_or_joint(const vn_checkpoints *all, const vn_pools *pools, const vn_checkpoint *p, vn_metric m,
                                 const vn_pooled_small *pool)
{
	if (pool)
		return (judged_value) { pool->value[m], pool->floor[m], true, true, pool->n };
	const int steps = vn_channel_steps(all, pools, p, m);
	if (steps) /* some floors may be unknown */
		return (judged_value) { p->m.value[m], vn_floor_value(p, m), p->m.has[m], p->has_floor && !isnan(p->floor[m]),
			                    steps };
	if (!vn_metric_get(m)->scores)
		return (judged_value) { p->m.value[m], vn_floor_value(p, m), p->m.has[m], p->has_floor, 0 };
	if (p->pooled_logits < 0)
		return (judged_value) { p->m.value[m], vn_floor_value(p, m), p->m.has[m], p->has_floor && p->rows >= FEW_ROWS,
			                    0 };
	const vn_pooled_logits *logits = &pools->pooled_logits[p->pooled_logits];
	return (judged_value) { logits->value[m], logits->floor[m], true, !isnan(logits->floor[m]) && logits->n >= FEW_ROWS,
		                    logits->n };
}

static judged_value value_to_judge(const vn_opened *o, const vn_checkpoints *all, const vn_pools *pools,
                                   const vn_checkpoint *p, vn_metric m, const vn_pooled_small *pool)
{
	judged_value s = own_or_joint(all, pools, p, m, pool);
	if (!isnan(s.floor))
		s.floor = fmax(s.floor, least_floor(o, p, m));
	return s;
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

/* A limit on a metric of a checkpoint. */
typedef struct question {
	const vn_opened       *o;
	const vn_checkpoints  *all;
	const vn_pools        *pools;
	const vn_checkpoint   *p;
	const vn_limit_set    *set;
	vn_metric              m;
	vn_form                form;
	const vn_limit        *l;
	bool                   without; /* the set has a limit without a floor that applies to p */
	bool                   own;     /* not judged with other channels */
	const vn_pooled_small *pool;    /* small steps that are judged with it; NULL */
	judged_value           s;
	int                    worst; /* checkpoint that gets the check of a pool; -1: no pool */
} question;

/* Below this count, one ratio of independent errors in 10,000 exceeds 4; with 16 numbers, one
 * in 250. A checkpoint with fewer numbers is excused if it passes the limit that applies
 * without a floor. */
enum { TOO_FEW_NUMBERS = 32 };

static bool is_excused(const question *q)
{
	const vn_limit *cap = &q->set->limit[VN_WITHOUT_FLOOR][q->m];
	const int64_t   numbers = q->pool ? q->pool->numbers : q->p->m.n * (q->s.steps ? q->s.steps : 1);
	return vn_pooled_small_has(q->m) && numbers < TOO_FEW_NUMBERS && cap->rule &&
	       vn_limit_holds(q->m, VN_WITHOUT_FLOOR, cap->value, q->s.value);
}

/* The limit on a share of rows as one on a number of rows; others as they are. */
static vn_limit for_rows(const question *q)
{
	vn_limit of = *q->l;
	int64_t  rows;
	if (q->form != VN_OVER_FLOOR && q->m == VN_M_ARGMAX_AGREEMENT && q->p->scores)
		of.value = vn_judge_count_limit(q->l->value, vn_judge_count_distinct(q->o, q->pools, q->p, &rows));
	return of;
}

static bool any_value_is_within(const question *q)
{
	return isinf(q->l->value) != 0;
}

static bool has_no_number(const question *q) /* vn_judge adds one check for all of these */
{
	return has_no_value(q->p, q->m) && (q->p->pooled_small < 0 || q->form != VN_OVER_FLOOR);
}

/* The ratio of few numbers varies by chance. */
static bool is_judged_in_its_channels(const question *q)
{
	return q->form == VN_OVER_FLOOR && q->p->pooled_small >= 0 && !q->own &&
	       vn_channel_steps(q->all, q->pools, q->p, q->m) == 0;
}

/* They are judged as choices, by what the candidate made them of (replay/routing.h). */
static bool is_of_experts(const question *q)
{
	vn_point of;

	return vn_point_from_name(vn_name_in_layer(q->p->name), &of) && of == VN_POINT_ROUTER_IDS;
}

static bool is_of_logits(const question *q)
{
	return vn_metric_get(q->m)->scores && !q->p->scores;
}

/* Defaults apply to every checkpoint; a rule that names this one gets a note. */
static bool is_named_for_logits(const question *q)
{
	return is_of_logits(q) && q->l->rule->match;
}

/* Of steps that are judged together, one gets the check, and each that breaks the limit by itself
 * too. */
static bool is_judged_at_the_worst_step(const question *q)
{
	const double floors = q->set->limit[VN_OVER_FLOOR][VN_M_NMSE].value;
	if (q->worst < 0 || &q->all->of[q->worst] == q->p)
		return false;
	if (q->pool && !vn_pooled_small_breaks_by(q->pool, q->p->m.value[VN_M_NMSE], isfinite(floors) ? floors : 1))
		return true;
	/* the limit on a number of rows is no tighter, and slow to compute for thousands of steps */
	if (!breaks_too(q->p, q->m, q->form, q->l, &q->s))
		return true;
	const vn_limit of = for_rows(q);
	return !breaks_too(q->p, q->m, q->form, &of, &q->s) || is_excused(q);
}

static bool has_a_floor_and_needs_none(const question *q)
{
	return q->form == VN_WITHOUT_FLOOR && q->s.has_floor;
}

static bool lacks_a_floor(const question *q)
{
	return q->form == VN_OVER_FLOOR && !q->s.has_floor;
}

static bool is_judged_without_a_floor(const question *q)
{
	return lacks_a_floor(q) && q->without;
}

static bool lacks_floors_of_steps(const question *q)
{
	return lacks_a_floor(q) && q->p->has_floor && q->s.steps && !vn_metric_get(q->m)->scores;
}

static bool has_too_few_rows(const question *q)
{
	return lacks_a_floor(q) && q->p->has_floor;
}

static bool was_not_kept(const question *q)
{
	return !q->s.has && q->p->partial_metrics && q->m != VN_M_NMSE && q->m != VN_M_NONFINITE && q->m != VN_M_DIFFERING;
}

static bool was_not_measured(const question *q)
{
	return !q->s.has;
}

static bool lacks_the_floor_of_this_metric(const question *q)
{
	return q->form == VN_OVER_FLOOR && isnan(q->s.floor);
}

static bool needs_no_floor(const question *q)
{
	return q->form != VN_OVER_FLOOR;
}

static bool is_outside_by_chance(const question *q)
{
	return !vn_limit_holds(q->m, q->form, q->l->value, over_floor(q->s.value, q->s.floor)) && is_excused(q);
}

static bool otherwise(const question *q)
{
	return q != NULL;
}

typedef enum answer {
	NO_CHECK,
	AT_ANOTHER_STEP,
	NOTE,          /* the check fails, for this reason */
	NOTE_OF_STEPS, /* the same, of all steps that are judged together */
	VALUE,
	WITHOUT_FLOOR, /* the value, by the limit that applies without a floor */
	RATIO,         /* of the value to its floor */
} answer;

/* How a limit is checked: the first row that applies decides. */
static const struct {
	bool (*applies)(const question *q);
	answer      then;
	const char *note;
} rules[] = {
	{ any_value_is_within, NO_CHECK, NULL },
	{ is_of_experts, NO_CHECK, NULL },
	{ has_no_number, NO_CHECK, NULL },
	{ is_judged_in_its_channels, AT_ANOTHER_STEP, NULL },
	{ is_named_for_logits, NOTE, "this metric exists for logits only" },
	{ is_of_logits, NO_CHECK, NULL },
	{ is_judged_at_the_worst_step, AT_ANOTHER_STEP, NULL },
	{ has_a_floor_and_needs_none, NO_CHECK, NULL },
	{ is_judged_without_a_floor, NO_CHECK, NULL },
	{ lacks_floors_of_steps, NOTE, "the floor lacks some of its steps: add a without_floor limit" },
	{ has_too_few_rows, NOTE, "too few rows for a ratio: add a without_floor limit" },
	{ lacks_a_floor, NOTE, "there is no floor: give --model or --floor, or add a without_floor limit" },
	{ was_not_kept, NO_CHECK, NULL },
	{ was_not_measured, NOTE_OF_STEPS, "not measured" },
	{ lacks_the_floor_of_this_metric, NOTE_OF_STEPS, "the floor lacks this metric" },
	{ needs_no_floor, VALUE, NULL },
	{ is_outside_by_chance, WITHOUT_FLOOR, NULL },
	{ otherwise, RATIO, NULL },
};

/* Of few rows, a count that is outside may be so by chance. */
static double value_with_luck(const question *q)
{
	const double value = q->s.value;
	if (!vn_judge_count_has_luck(q->m) || vn_limit_holds(q->m, q->form, q->l->value, value))
		return value;
	const double left = vn_judge_count_factor(q->o, q->pools, q->p, q->m, value, q->p->m.value[VN_M_NMSE]);
	return vn_limit_holds(q->m, q->form, q->l->value, left) ? left : value;
}

/* Returns false when the check is made at another step. */
static bool check_metric(question *q, checks *to)
{
	int      i = 0;
	vn_limit of;

	q->l = &q->set->limit[q->form][q->m];
	q->own = q->p->channels < 0 || vn_channel_metric(q->m) < 0;
	q->pool = q->form == VN_OVER_FLOOR && q->p->pooled_small >= 0 && vn_pooled_small_has(q->m) && q->own
	              ? &q->pools->pooled_small[q->p->pooled_small]
	              : NULL;
	q->s = value_to_judge(q->o, q->all, q->pools, q->p, q->m, q->pool);
	q->worst = vn_metric_get(q->m)->scores && q->p->pooled_logits >= 0
	               ? q->pools->pooled_logits[q->p->pooled_logits].worst
	           : q->pool ? q->pool->worst
	                     : -1;
	while (!rules[i].applies(q))
		i++;
	switch (rules[i].then) {
	case NO_CHECK: return true;
	case AT_ANOTHER_STEP: return false;
	case NOTE:
	case NOTE_OF_STEPS: add_check(to, q->m, q->form, q->l, 0, rules[i].note); break;
	case VALUE:
		of = for_rows(q);
		add_check(to, q->m, q->form, &of, value_with_luck(q), NULL);
		break;
	case WITHOUT_FLOOR:
		add_check(to, q->m, VN_WITHOUT_FLOOR, &q->set->limit[VN_WITHOUT_FLOOR][q->m], q->s.value, NULL);
		break;
	case RATIO: add_check(to, q->m, q->form, q->l, over_floor(q->s.value, q->s.floor), NULL); break;
	}
	to->check[to->n - 1].steps = rules[i].then == NOTE ? 0 : q->s.steps;
	return true;
}

/* Warns of a limit that rounding to the candidate's format breaks by itself. */
static void doubt_check(const vn_opened *o, vn_lines *warnings, const vn_checkpoint *p, const vn_check *k)
{
	if (p->cand < 0)
		return;
	const vn_dtype r = vn_recording_entry(o->ref, p->ref)->dtype, d = vn_recording_entry(o->cand, p->cand)->dtype;
	const int      digits = vn_dtype_digits(d);
	if (vn_dtype_digits(r) <= digits || k->form == VN_OVER_FLOOR || !k->rule)
		return;
	const double half = vn_dtype_ulp(d, p->m.absmax[0]) / 2;
	if (k->metric == VN_M_MAX_ABS && k->limit < half)
		vn_lines_once(warnings, "", "times", "%s:%d: max_abs %g is too tight for %s: half a ULP of %s at %.3g is %.2g",
		              k->rule->file, k->line, k->limit, p->name, vn_dtype_name(d), p->m.absmax[0], half);
	/* One rounding causes an error of up to 2^-(digits+1), whose square is 0.18 of
	 * that on average. */
	const double one = 0.1 * ldexp(1.0, -2 * (digits + 1));
	if (k->metric == VN_M_NMSE && k->limit < one && p->m.value[VN_M_ULP_MAX] <= 1 && !k->holds)
		vn_lines_once(warnings, "", "times",
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

static bool is_not_gathered(const vn_opened *o, const vn_checkpoint *p)
{
	return p->scores && p->cand >= 0 && o->cand && vn_recording_entry(o->cand, p->cand)->not_gathered &&
	       !(o->request.options->allow & VN_ALLOW_RANKS);
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

void vn_judge(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, vn_lines *warnings, vn_checkpoint *p)
{
	static const vn_limit none = { NULL, 0.0, 0 };
	vn_limit_set          set;
	bool                  without = false, elsewhere = false;
	checks                list;

	list.n = 0;
	vn_limits_for(o->request.limits, p->name, &set);
	for (int m = 0; m < VN_N_METRICS; m++)
		without = without ||
		          (set.limit[VN_WITHOUT_FLOOR][m].rule && (!vn_metric_get((vn_metric)m)->scores || p->scores));
	if (p->vacuous && !set.permission[VN_PERMIT_CONSTANT])
		add_check(&list, VN_M_NMSE, VN_PLAIN, &none, 0, p->vacuous);
	else if (!p->m.finite && !set.permission[VN_PERMIT_CONSTANT])
		add_check(&list, VN_M_NMSE, VN_PLAIN, &none, 0, "no number is finite on both sides");
	if (p->invalid_floor)
		add_check(&list, VN_M_NMSE, VN_OVER_FLOOR, &none, 0, p->detail ? p->detail : "its floor is not valid");
	if (is_not_gathered(o, p))
		add_check(&list, VN_M_NMSE, VN_PLAIN, &none, 0, vn_not_gathered);
	for (int m = 0; m < VN_N_METRICS; m++)
		for (int f = 0; f < VN_N_FORMS; f++)
			if (set.limit[f][m].rule && !check_metric(&(question) { .o = o,
			                                                        .all = all,
			                                                        .pools = pools,
			                                                        .p = p,
			                                                        .set = &set,
			                                                        .m = (vn_metric)m,
			                                                        .form = (vn_form)f,
			                                                        .without = without },
			                                          &list))
				elsewhere = true;
	p->status = list.n || elsewhere ? VN_WITHIN : VN_UNLIMITED;
	if (!set.limit[VN_PLAIN][VN_M_NONFINITE].rule) /* also when a rule says none, which requires a number */
		add_check(&list, VN_M_NONFINITE, VN_PLAIN, &none, p->m.value[VN_M_NONFINITE], NULL);
	if (must_be_equal(o, p, &set))
		add_check(&list, VN_M_MAX_ABS, VN_PLAIN, &none, p->m.value[VN_M_MAX_ABS], NULL);
	for (int i = 0; i < list.n; i++) {
		const vn_check *k = &list.check[i];
		doubt_check(o, warnings, p, k);
		if (k->holds)
			continue;
		if (vn_channel_steps(all, pools, p, k->metric) && k->steps)
			pools->channel_pool[p->channels].outside = true;
		else if (p->pooled_small >= 0 && k->steps && vn_pooled_small_has(k->metric))
			pools->pooled_small[p->pooled_small].outside = true;
		p->status = VN_OUTSIDE;
		p->fails = true;
		if (p->worst < 0 || is_worse(k, &list.check[p->worst]))
			p->worst = i;
	}
	vn_checks_keep(&all->terms, p, list.check, list.n);
}
