/* floor_check.c: is the floor plausible?
 *
 * A floor says how far a number format moves a checkpoint of the reference, so it must not exceed
 * what a format can do. A wrong reference is far from any run, and a run of something else is far
 * from the reference. Such a floor, used as the unit, would excuse any candidate.
 */
#include "compare/floor/floor_check.h"
#include "compare/comparison/checkpoint.h"
#include "compare/floor/precision.h"
#include "compare/judge/count.h"
#include "compare/judge/localise.h"

#include "capture/file/output.h"
#include "libref/base/alloc.h"
#include "libref/plan/point.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rejects the floor of p, with a reason: p then has no floor and is outside, unless --allow
 * floor. */
static void reject_floor(const vn_floor_parts *f, vn_checkpoint *p, const char *format, ...)
{
	char    why[200];
	va_list args;
	f->found->n_invalid++;
	if (f->found->first_invalid < 0)
		f->found->first_invalid = (int)(p - f->all->of);
	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	vn_checkpoint_say(p, "%s", why);
	if (f->o->request.options->allow & VN_ALLOW_FLOOR)
		return;
	p->invalid_floor = true;
	p->has_floor = false;
}

/* A floor may exceed all floors of its inputs and of the operations that read it by at most this
 * factor, in nmse and in worst-token nmse. Measured on correct runs: up to 13. */
#define NEIGHBOURS 100.0

enum { N_KINDS = 2 };

static const vn_metric near_kinds[N_KINDS] = { VN_M_NMSE, VN_M_WORST_TOKEN_NMSE };

/* By what factor a floor may exceed those around it. The floor of few numbers varies by chance. An
 * error in a score becomes a factor in a probability, and where the values are alike, as for one
 * repeated token, none of it reaches the context: a ratio of 45 was measured there, without an
 * upper bound. */
static double allowed_floor(const vn_opened *o, const vn_checkpoint *p)
{
	const bool probs = vn_entry_point(vn_recording_entry(o->ref, p->ref)) == vn_point_get(VN_POINT_ATTN_PROBS);
	return NEIGHBOURS * (p->m.n < VN_SMALL_SAMPLE ? 4 : 1) * (probs ? 100 : 1);
}

typedef struct around {
	double most[N_KINDS];
	int    n;
} around;

static void add_neighbour(around *a, const vn_checkpoint *other)
{
	a->n++;
	for (int k = 0; k < N_KINDS; k++)
		a->most[k] = fmax(a->most[k], other->floor[near_kinds[k]]);
}

static void look_around(const vn_floor_parts *f, const vn_localised *here, around *near, int *input)
{
	for (int i = 0; i < f->all->n; i++) {
		const vn_checkpoint *p = &f->all->of[i];
		const int n = p->has_floor && p->value >= 0 ? vn_inputs_of(f->o, f->all, here, i, input, f->all->n) : 0;
		for (int k = 0; k < n; k++) {
			const vn_checkpoint *q = &f->all->of[input[k]];
			if (!q->has_floor || input[k] == i)
				continue;
			add_neighbour(&near[i], q);
			add_neighbour(&near[input[k]], p);
		}
	}
}

/* Checks each floor of a recording against those of neighbouring operations. rounding: the nmse of
 * one rounding. */
static void check_near(const vn_floor_parts *f, double rounding)
{
	vn_localised here = { 0 };

	if (!f->o->plan)
		return;
	vn_graph_build(f->o, f->all, &here);
	if (!here.graph)
		return;
	VN_FREED around *near = vn_alloc_zero((size_t)f->all->n, sizeof *near);
	VN_FREED int    *input = vn_alloc((size_t)f->all->n, sizeof *input);
	look_around(f, &here, near, input);
	for (int i = 0; i < f->all->n; i++) {
		vn_checkpoint *p = &f->all->of[i];
		for (int k = 0; p->has_floor && near[i].n && k < N_KINDS; k++) {
			const double most = fmax(near[i].most[k], rounding);
			if (p->floor[near_kinds[k]] <= allowed_floor(f->o, p) * most)
				continue;
			reject_floor(
				f, p,
				"the floor is not a run of this reference: %s %.3g, but at the neighbouring checkpoints at most %.3g",
				vn_metric_get(near_kinds[k])->name, p->floor[near_kinds[k]], near[i].most[k]);
		}
	}
	vn_localise_drop_graph(&here);
}

/* ---- a recording ------------------------------------------------------------------- */

/* With fewer numbers two engines in one format may agree to the bit: so do nearly all prompts of
 * two tokens in the fixtures, and an eighth of those with seventy. */
enum { ENOUGH_NUMBERS = 512 };

static const char *find_fact(const vn_recording *r, const char *key)
{
	const char *value = vn_facts_get(vn_recording_run(r), key);
	return value ? value : "";
}

static vn_status check_refusals(const vn_opened *o, const vn_lines *refusals, vn_error *err)
{
	return refusals->n == 0 ? VN_OK
	                        : vn_fail(err, VN_ERR_MISMATCH, "%s cannot be the floor of %s", vn_recording_path(o->floor),
	                                  vn_recording_path(o->cand));
}

vn_status vn_floor_contract(const vn_opened *o, vn_remarks *remarks, vn_error *err)
{
	const vn_weight_row *rows;
	const char          *inject = find_fact(o->floor, "inject");

	if (vn_same_file(vn_recording_path(o->floor), vn_recording_path(o->cand)))
		vn_remarks_refuse(o, remarks, VN_ALLOW_FLOOR, "floor",
		                  "the floor is the candidate's own file: no fault could be seen");
	if (*inject)
		vn_remarks_refuse(o, remarks, VN_ALLOW_FLOOR, "floor", "the floor was run with a fault on purpose (%.80s)",
		                  inject);
	/* A field that the reference records and the floor does not may differ. */
	if (vn_recording_weights(o->ref, &rows) > 0 && vn_recording_weights(o->floor, &rows) <= 0)
		vn_remarks_refuse(o, remarks, VN_ALLOW_WEIGHTS, "weights", "weights: the floor does not record its weights");
	if (vn_recording_config(o->ref) && !vn_recording_config(o->floor))
		vn_remarks_refuse(o, remarks, VN_ALLOW_CONFIG, "config", "config: the floor does not record its config");
	return check_refusals(o, &remarks->refusals, err);
}

/* Whether every metric is equal to the last digit and at least one is not zero. */
static bool same_numbers(const vn_checkpoint *p)
{
	for (int m = 0; m < VN_N_METRICS; m++)
		if (p->m.has[m] && p->m.value[m] != p->floor[m] && !(isnan(p->m.value[m]) && isnan(p->floor[m])))
			return false;
	return true;
}

/* A candidate from the reference's own engine has the same bits as the floor,
 * so it is not checked. */
static vn_status not_the_candidate(const vn_floor_parts *f, vn_error *err)
{
	const char *engine = find_fact(f->o->floor, "engine"), *own = find_fact(f->o->cand, "engine");
	int         n = 0, same = 0;

	if (strcmp(engine, own) != 0 || strcmp(engine, "ref") == 0)
		return VN_OK;
	for (int i = 0; i < f->all->n; i++) {
		const vn_checkpoint *p = &f->all->of[i];
		if (p->has_floor && p->m.n >= ENOUGH_NUMBERS && p->floor[VN_M_NMSE] > 0) {
			n++;
			same += same_numbers(p);
		}
	}
	if (2 * same <= n)
		return VN_OK;
	vn_remarks_refuse(f->o, f->remarks, VN_ALLOW_FLOOR, "floor",
	                  "the floor has the candidate's own numbers in %d of %d checkpoints: no fault could be seen there",
	                  same, n);
	return check_refusals(f->o, &f->remarks->refusals, err);
}

/* ---- how large it may be ---------------------------------------------------------------- */

/* Limits that apply without a floor: the user's, or else vernier's own. A run that breaks them
 * would be outside its limits by itself. */
static const vn_limit *limit_of(const vn_limit_set *said, const vn_limit_set *own, int m, vn_form *form)
{
	*form = said->limit[VN_WITHOUT_FLOOR][m].rule || own->limit[VN_WITHOUT_FLOOR][m].rule ? VN_WITHOUT_FLOOR : VN_PLAIN;
	return said->limit[VN_WITHOUT_FLOOR][m].rule ? &said->limit[VN_WITHOUT_FLOOR][m] : &own->limit[*form][m];
}

/* How far the floor may exceed such a limit. The limits are meant for trained models and whole
 * tensors. For the few numbers of a decoded token the floor varies by chance: up to twice in norm
 * (four times in squares) in correct bf16 runs, and 2.1 times in norm for a model of 80 layers that
 * were not trained together. A reference with a fault exceeds the limit a hundred times or more. */
static bool keeps_to(const vn_checkpoint *p, vn_metric m, vn_form form, double limit, double value)
{
	const vn_check       k = { .metric = m, .form = form, .limit = limit, .value = vn_limit_subject(m, form, value) };
	const vn_metric_kind kind = vn_metric_get(m)->kind;
	const bool           squared = kind == VN_KIND_SQUARES || kind == VN_KIND_COSINE || kind == VN_KIND_DIVERGENCE;
	double               most = squared ? 25 : 5;
	if (kind == VN_KIND_FACTOR) /* accounts for the number of elements */
		most = p->m.n < VN_SMALL_SAMPLE ? 4 : 1;
	return vn_check_limit_fraction(&k) <= most;
}

static bool speaks_of_error(int m)
{
	return (m == VN_M_KL_MEAN || !vn_metric_get((vn_metric)m)->scores) && vn_metric_is_error((vn_metric)m);
}

static void within_limits(const vn_floor_parts *f, vn_limits *own, const char *what, const char *precision)
{
	vn_limit_set said, ours;
	char         key[VN_KEY_TEXT];

	own->layers = f->o->request.limits->layers;
	for (int i = 0; i < f->all->n; i++) {
		vn_checkpoint *p = &f->all->of[i];
		if (!p->has_floor)
			continue;
		vn_limits_for(f->o->request.limits, p->name, &said);
		vn_limits_for(own, p->name, &ours);
		for (int k = -1; k < VN_N_METRICS; k++) { /* nmse first: it is the most informative */
			const int       m = k < 0 ? VN_M_NMSE : k;
			vn_form         form;
			const vn_limit *l = limit_of(&said, &ours, m, &form);
			if (!speaks_of_error(m) || !l->rule || isnan(p->floor[m]) ||
			    keeps_to(p, (vn_metric)m, form, l->value, p->floor[m]) ||
			    (vn_judge_count_has_luck((vn_metric)m) &&
			     keeps_to(p, (vn_metric)m, form, l->value,
			              vn_judge_count_factor(f->o, f->pools, p, (vn_metric)m, p->floor[m], p->floor[VN_M_NMSE]))))
				continue;
			reject_floor(f, p, "%s: %s %.3g, but %s leaves at most %.3g", what,
			             vn_limit_key(VN_PLAIN, (vn_metric)m, key), vn_limit_subject((vn_metric)m, form, p->floor[m]),
			             precision, l->value);
			break;
		}
	}
}

static vn_status open_own(const vn_opened *o, const char *precision, vn_limits **own, vn_error *err)
{
	const char *family = vn_recording_family(o->ref);
	return vn_limits_own(precision, family, own, NULL) ? vn_limits_own("bf16", family, own, err) /* the coarsest */
	                                                   : VN_OK;
}

static void warn_invalid_floors(const vn_floor_parts *f, const char *what)
{
	if (!f->found->n_invalid)
		return;
	vn_lines_add(&f->remarks->warnings, "%s%s at %d checkpoint%s (first: %s)%s",
	             f->o->request.options->allow & VN_ALLOW_FLOOR ? "allowed (floor): " : "", what, f->found->n_invalid,
	             f->found->n_invalid == 1 ? "" : "s", f->all->of[f->found->first_invalid].name,
	             f->o->request.options->allow & VN_ALLOW_FLOOR ? "" : "; those have no floor");
}

/* The nmse of one rounding to the format: 0.18 times the square of half an ulp of 1. */
static double storage_rounding(vn_policy p)
{
	return 0.18 * ldexp(1.0, -2 * (vn_dtype_digits(p.storage) + 1));
}

vn_status vn_floor_check_file(const vn_floor_parts *f, vn_error *err)
{
	static const char what[] = "the floor is not a run of this reference";
	vn_limits        *own;
	vn_policy         policy;
	vn_status         st;
	const char       *precision = vn_precision_of(f->o->floor);

	if ((st = not_the_candidate(f, err)) || (st = open_own(f->o, precision, &own, err)))
		return st;
	vn_policy_of_recording(f->o->floor, &policy);
	check_near(f, storage_rounding(policy)); /* first: nothing can be compared with a floor of zero */
	within_limits(f, own, what, precision);
	vn_limits_destroy(own);
	warn_invalid_floors(f, what);
	return VN_OK;
}

/* ---- a run of the model ------------------------------------------------------------------- */

/* The nmse that another order of summation may cause: fp32.yaml's limit for float32; for float64,
 * that of transformers' float32 norms; for 16 bits, more than any correct runs differ. */
static double allowed_slack(vn_policy p)
{
	return p.storage == VN_F64 ? 1e-12 : p.storage == VN_F32 ? 1e-8 : 1e-3;
}

/* The difference may be at most a tenth of the floor without the reference's own fault, which is
 * part of the measured floor. A scale error of 2 % exceeds that. The bound for a single token is a
 * hundred times larger, as in fp32.yaml. */
static bool is_own(const vn_checkpoint *p, const double own[2], double least)
{
	return own[0] <= fmax((p->floor[VN_M_NMSE] - own[0]) / 10, least) &&
	       own[1] <= fmax((p->floor[VN_M_WORST_TOKEN_NMSE] - own[1]) / 10, 100 * least);
}

/* Allows for another engine in the same format. transformers in bfloat16 is 4.0 and 7.5 floors of
 * one run away (bf16.yaml), which is two of the floors used here. The bound is twice that, and four
 * times more for few numbers, whose errors vary by chance. */
static bool is_a_run(const vn_checkpoint *p, const double own[2], vn_policy of_ref)
{
	const double times = p->m.n < VN_SMALL_SAMPLE ? 16 : 4, least = storage_rounding(of_ref);
	return own[0] <= fmax(times * p->floor[VN_M_NMSE], least) &&
	       own[1] <= fmax(4 * times * p->floor[VN_M_WORST_TOKEN_NMSE], 100 * least);
}

vn_status vn_floor_check_model(const vn_floor_parts *f, double (*own)[2], bool two_runs, vn_error *err)
{
	static const char what[] = "the reference differs from what its own model computes";
	vn_policy         of_ref;
	vn_limits        *limits;
	vn_status         st;

	vn_policy_of_recording(f->o->ref, &of_ref);
	for (int i = 0; own && i < f->all->n; i++) {
		vn_checkpoint *p = &f->all->of[i];
		if (p->has_floor && !(two_runs ? is_a_run(p, own[i], of_ref) : is_own(p, own[i], allowed_slack(of_ref))))
			reject_floor(f, p, "%s: nmse %.3g, worst token %.3g from a run in %s", what, own[i][0], own[i][1],
			             vn_policy_name(of_ref));
	}
	if (!own) {
		const vn_policy coarser = vn_policy_finer(f->o->policy, of_ref) ? of_ref : f->o->policy;
		if ((st = open_own(f->o, vn_policy_name(coarser), &limits, err)))
			return st;
		within_limits(f, limits, what, vn_policy_name(coarser));
		vn_limits_destroy(limits);
	}
	warn_invalid_floors(f, what);
	return VN_OK;
}

/* ---- a floor that is the reference over again ------------------------------------------- */

static bool is_equal(const vn_checkpoint *p, vn_policy floor)
{
	return p->has_floor && p->floor[VN_M_NMSE] < storage_rounding(floor);
}

void vn_floor_drop_equal(const vn_opened *o, vn_checkpoints *all, vn_lines *warnings)
{
	const vn_checkpoint *first = NULL;
	vn_policy            floor = o->policy, of_ref;
	int                  n = 0, equal = 0, known = 0;

	if (o->floor)
		vn_policy_of_recording(o->floor, &floor);
	vn_policy_of_recording(o->ref, &of_ref);
	if (vn_policy_finer(of_ref, floor) || !vn_limits_ask_floor(o->request.limits))
		return;
	for (int i = 0; i < all->n; i++) {
		known += all->of[i].has_floor;
		equal += is_equal(&all->of[i], floor);
	}
	for (int i = 0; i < all->n; i++) {
		vn_checkpoint *p = &all->of[i];
		/* A few numbers may be equal by chance. They are judged together with those of other steps
		 * (pooled_small.c). */
		if (!is_equal(p, floor) || (p->m.n < VN_SMALL_SAMPLE && 2 * equal <= known))
			continue;
		p->has_floor = false;
		first = first ? first : p;
		n++;
	}
	if (n)
		vn_lines_add(warnings,
		             "the floor is in %s like the reference, and has the same numbers at %d checkpoint%s (first: %s): "
		             "those have no floor, so without_floor limits apply",
		             vn_policy_name(floor), n, n == 1 ? "" : "s", first->name);
}
