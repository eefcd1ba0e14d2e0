/* compare_infer.c: finds the formats of a candidate's roles, where its operations are wrong in all
 * layers and steps.
 *
 * One role in one format after the other is tried (libref/plan/policy.h), and the policy is taken
 * in which these operations are right. It needs evidence that the format was used, not only that
 * its floor is wide enough:
 *
 *   alike     the candidate is far nearer to what the format gives than to what none gives: its
 *             numbers were rounded as the policy says
 *   as large  or, if many roundings lie between captured tensors, so that few bits of them are
 *             known: it is nearer, and as far from a run without the format as a run with it is. An
 *             error as large that has nothing in common with the format's makes it farther
 *
 * An 8-bit cache of a 16-bit run errs hardly more than the run's own roundings: some operation is
 * wrong, and at least half of the calls that read the cache are off. There it is enough that nearly
 * all of these are nearer.
 *
 * Of logits in float32 alone, the layers before may have been computed in 16 bits: their last state
 * shows it (estimate/last_state.h).
 *
 * A deviation in one layer or step is no policy: then the operations of the other layers are wrong
 * under it. Nor need all steps be compared with every format: the first ones are enough, or the
 * last ones, if only later steps are wrong. Nor all tokens of a large vocabulary
 * (libref/plan/vocab_part.h). A format is dropped once too many operations are farther.
 */
#include "compare/compare_infer.h"

#include "compare/chapters/compare.h"
#include "compare/estimate/last_state.h"
#include "compare/infer_roles.h"
#include "compare/replay/local.h"

#include "libref/base/alloc.h"
#include "libref/plan/vocab_part.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ALIKE: mean factor by which the operations of a role must be nearer; EXACTLY_ALIKE: of bits that
 * are known; SLIGHTLY_ALIKE: of an 8-bit cache (measured in decoding in bfloat16: 2.3; without it
 * 0.3), over ENOUGH rows of several operations; NEARER_ALONE: by one of two formats (2 if both
 * round alike). NEARER_PRODUCTS: by that of products, so that the last state was not stored in it.
 * AS_LARGE_WITHIN: the factor between an error and the format's, if it is as large. LEAST_ERROR: of
 * a run in 16 bits, in floors; one that rounded its last state alone has at most 0.06.
 * LEAST_SQUARE: of 66 such runs of mixtures, in units of the format at 1, squared and relative: 1.1
 * and more; of a last state alone 0.13. MOST_LEFT: of the role's operations, at most one in so many
 * may remain wrong, by a fault of its own. */
#define ALIKE           4.0
#define SLIGHTLY_ALIKE  1.5
#define EXACTLY_ALIKE   1e4
#define NEARER_ALONE    1.1
#define NEARER_PRODUCTS 2.0
#define AS_LARGE_WITHIN 2.0
#define LEAST_ERROR     0.1
#define LEAST_SQUARE    0.4
enum { MOST_LEFT = 5, ENOUGH = 8 };

typedef struct idea {
	vn_role        role;
	vn_role_format format;
} idea;

/* In the order of preference among equals. The last ones are of the first call's tokens alone. */
static const idea ideas[] = {
	{ VN_ROLE_CACHE, VN_ROLE_F16 },
	{ VN_ROLE_CACHE, VN_ROLE_BF16 },
	{ VN_ROLE_LINEAR, VN_ROLE_TF32 },
	{ VN_ROLE_LINEAR, VN_ROLE_BF16 },
	{ VN_ROLE_LINEAR, VN_ROLE_F16 },
	{ VN_ROLE_PRODUCTS, VN_ROLE_TF32 },
	{ VN_ROLE_PRODUCTS, VN_ROLE_BF16 },
	{ VN_ROLE_PRODUCTS, VN_ROLE_F16 },
	{ VN_ROLE_WEIGHTS, VN_ROLE_BF16 },
	{ VN_ROLE_WEIGHTS, VN_ROLE_F16 },
	{ VN_ROLE_SOFTMAX, VN_ROLE_F16 },
	{ VN_ROLE_SOFTMAX, VN_ROLE_BF16 },
	{ VN_ROLE_CACHE, VN_ROLE_Q8_0 },
	{ VN_ROLE_CACHE, VN_ROLE_INT8 },
	{ VN_ROLE_CACHE, VN_ROLE_F8 },
	{ VN_ROLE_LINEAR, VN_ROLE_INT8_INPUTS },
	{ VN_ROLE_LINEAR, VN_ROLE_Q8_INPUTS },
	{ VN_ROLE_LINEAR, VN_ROLE_INT8 },
	{ VN_ROLE_LINEAR, VN_ROLE_F8 },
	{ VN_ROLE_PRODUCTS, VN_ROLE_F8 },
	{ VN_ROLE_WEIGHTS, VN_ROLE_INT8 },
	{ VN_ROLE_WEIGHTS, VN_ROLE_F8 },
	{ VN_ROLE_WEIGHTS, VN_ROLE_Q8_0 },
	{ VN_ROLE_CACHE, VN_ROLE_INT8_TOKEN },
	{ VN_ROLE_CACHE, VN_ROLE_INT8_CHANNEL },
	{ VN_ROLE_CACHE, VN_ROLE_F8_SCALED },
	{ VN_CACHE_OF_PROMPT, VN_ROLE_F16 },
	{ VN_CACHE_OF_PROMPT, VN_ROLE_BF16 },
	{ VN_CACHE_OF_PROMPT, VN_ROLE_Q8_0 },
	{ VN_CACHE_OF_PROMPT, VN_ROLE_INT8 },
	{ VN_CACHE_OF_PROMPT, VN_ROLE_INT8_TOKEN },
	{ VN_CACHE_OF_PROMPT, VN_ROLE_INT8_CHANNEL },
	{ VN_CACHE_OF_PROMPT, VN_ROLE_F8 },
	{ VN_CACHE_OF_PROMPT, VN_ROLE_F8_SCALED },
};
enum { N_IDEAS = sizeof ideas / sizeof *ideas };

/* ---- the evidence ---------------------------------------------------------------------------- */

typedef enum evidence_kind { NO_EVIDENCE, AS_LARGE, ALIKE_ROUNDED } evidence_kind;

typedef struct format_evidence {
	evidence_kind kind;
	/* of the kind, larger is better. ALIKE_ROUNDED: logarithm of the mean factor by which the
	 * candidate is nearer than before. AS_LARGE: minus that of the factor between the two errors */
	double        score;
	int           left; /* operations that remain wrong */
} format_evidence;

/* Few formats are tried by the size of the error alone: some format is as coarse as any fault is
 * large. */
static bool is_float(vn_role_format f)
{
	return f == VN_ROLE_TF32 || f == VN_ROLE_F16 || f == VN_ROLE_BF16;
}

static double logarithm(double x)
{
	return log(fmax(x, 1e-40));
}

/* Returns the logarithm of the mean factor by which the n operations listed are nearer; -INFINITY
 * if some cannot be judged, or too many are farther. */
static double nearer_by(const vn_checkpoints *was, const vn_checkpoints *is, const vn_role_part *of, int n)
{
	double sum = 0;
	int    farther = 0;

	for (int i = 0; i < was->n; i++) {
		const vn_replayed *p = &was->of[i].replay, *q = &is->of[i].replay;
		if (!of[i])
			continue;
		if (!is->of[i].replayed || !(q->floor > 0) || q->not_measured || q->bad)
			return -(double)INFINITY;
		sum += logarithm(p->local / fmax(q->local, q->floor * 1e-3)) / n;
		farther += p->local < q->local;
	}
	return farther * MOST_LEFT > n ? -(double)INFINITY : sum;
}

/* was: judged without the format; is: with it; alike: logarithm of the factor that is asked for. */
static format_evidence weigh(const vn_checkpoints *was, const vn_checkpoints *is, const vn_role_part *of, int n,
                             vn_role_format f, double alike)
{
	const double nearer = nearer_by(was, is, of, n);
	double       size = 0, token = 0;
	int          left = 0;

	for (int i = 0; i < was->n; i++) {
		const vn_replayed *p = &was->of[i].replay, *q = &is->of[i].replay;
		if (!of[i])
			continue;
		if (!vn_local_judges(&is->of[i]) || !(q->floor > 0) || !(q->floor_token > 0))
			return (format_evidence) { 0 };
		left += vn_local_beyond(&is->of[i]);
		size += logarithm(p->local / q->floor) / n;
		token += logarithm(p->local_token / q->floor_token) / n;
	}
	if (left * MOST_LEFT > n)
		return (format_evidence) { 0 };
	if (nearer > alike)
		return (format_evidence) { ALIKE_ROUNDED, nearer, left };
	return is_float(f) && nearer > 0 && fabs(size) <= log(AS_LARGE_WITHIN) && fabs(token) <= log(AS_LARGE_WITHIN)
	           ? (format_evidence) { AS_LARGE, -fabs(size), left }
	           : (format_evidence) { 0 };
}

/* Among sizes alone, a format that clears all operations goes before one that leaves some. */
static bool is_better(format_evidence a, format_evidence b)
{
	if (a.kind != b.kind || !a.kind)
		return a.kind > b.kind;
	return a.kind == AS_LARGE && a.left != b.left ? a.left < b.left : a.score > b.score + log(1.1);
}

/* Are all operations of the role wrong, in every layer and step? */
static bool all_wrong(const vn_checkpoints *all, const vn_role_part *of, int n)
{
	int wrong = 0;

	for (int i = 0; i < all->n; i++)
		wrong += of[i] && vn_local_beyond(&all->of[i]);
	return n > 0 && (n - wrong) * MOST_LEFT <= n;
}

/* Leaves the calls that read an earlier one's cache in the list, and returns how many; if there is
 * one call alone, it is left. */
static int list_later(vn_recording *cand, const vn_checkpoints *all, vn_role_part *of)
{
	int n = 0;

	if (all->n && all->of[0].step == all->of[all->n - 1].step) {
		for (int i = 0; i < all->n; i++)
			n += of[i] != VN_PART_NONE;
		return n;
	}
	for (int i = 0; i < all->n; i++) {
		const vn_step *step = vn_recording_step(cand, all->of[i].step);
		if (!step || !step->position)
			of[i] = VN_PART_NONE;
		n += of[i] != VN_PART_NONE;
	}
	return n;
}

/* Is half of n listed operations, of several, off by more than a floor, and have they enough
 * rows? */
static bool are_slight(vn_recording *cand, const vn_checkpoints *all, const vn_role_part *of, int n)
{
	int64_t rows = 0;
	int     off = 0;

	for (int i = 0; i < all->n; i++) {
		const vn_step *step = of[i] ? vn_recording_step(cand, all->of[i].step) : NULL;
		rows += step ? step->rows : 0;
		off += of[i] && vn_local_ratio(&all->of[i].replay) > 1;
	}
	return n > 1 && rows >= ENOUGH && 2 * off >= n;
}

static bool is_some_wrong(const vn_checkpoints *all, const vn_role_part *of)
{
	bool wrong = false;

	for (int i = 0; i < all->n; i++)
		wrong = wrong || (of[i] && vn_local_beyond(&all->of[i]));
	return wrong;
}

/* ---- what is tried --------------------------------------------------------------------------- */

/* Has the role a format, by this or by another name? `products` may follow `linear`, which it
 * includes. */
static bool is_taken(vn_policy p, idea i)
{
	return p.role[i.role == VN_CACHE_OF_PROMPT ? VN_ROLE_CACHE : i.role] ||
	       (i.role == VN_ROLE_LINEAR && p.role[VN_ROLE_PRODUCTS]) ||
	       (i.role == VN_ROLE_PRODUCTS && p.role[VN_ROLE_LINEAR] && p.role[VN_ROLE_LINEAR] != i.format);
}

static vn_policy with_idea(vn_policy p, idea i)
{
	p.role[i.role] = i.format;
	if (i.role == VN_CACHE_OF_PROMPT)
		p.role[VN_ROLE_CACHE] = i.format;
	if (i.role == VN_ROLE_PRODUCTS)
		p.role[VN_ROLE_LINEAR] = VN_ROLE_AS_STORED;
	return p;
}

/* One or two formats that are tried together. */
typedef struct trial_idea {
	idea   of[2];
	int    n;
	double nearer; /* as in format_evidence, without the floors of spans; -INFINITY: not possible */
	double alike;  /* as in weigh */
	bool   judged;
} trial_idea;

enum { N_TRIALS = N_IDEAS + 24 }; /* and those of list_both */

/* What a search for the next format knows. */
typedef struct policy_search {
	const vn_inference   *x;
	vn_role_walk          walk;   /* of *is */
	vn_role_part         *of;     /* (checkpoints) */
	bool                 *counts; /* (checkpoints) for a bound */
	vn_policy             policy; /* of *is */
	const vn_opened      *opened;
	const vn_checkpoints *is; /* judged by it */
	trial_idea            trial[N_TRIALS];
	int                   n;
	vn_comparison         best;    /* with the best idea so far; most.kind NO_EVIDENCE: none */
	vn_policy             as_best; /* its policy */
	format_evidence       most;
} policy_search;

static void begin_search(policy_search *s)
{
	vn_role_walk_init(&s->walk, s->is, s->opened->plan);
	s->of = vn_alloc((size_t)s->is->n, sizeof *s->of);
	s->counts = vn_alloc((size_t)s->is->n, sizeof *s->counts);
}

static void end_search(policy_search *s)
{
	vn_comparison_close(&s->best);
	vn_role_walk_finish(&s->walk);
	VN_FREE(s->of, s->counts);
}

/* Fills s->of if the idea is possible: its role has no format yet, and all of its operations are
 * wrong; of a cache, those of later calls, if each call reads its own rows as they are. Returns how
 * many checkpoints count, or 0. *alike: as in weigh. */
static int possible(policy_search *s, idea i, double *alike)
{
	const bool cache = i.role == VN_ROLE_CACHE || i.role == VN_CACHE_OF_PROMPT;
	const bool calls = s->is->n && s->is->of[0].step != s->is->of[s->is->n - 1].step; /* than the first */
	const bool never = is_taken(s->policy, i) || (i.role == VN_CACHE_OF_PROMPT && !calls);
	const int  count = never ? 0 : vn_role_parts(&s->walk, i.role, s->of);

	*alike = log(ALIKE);
	if (all_wrong(s->is, s->of, count) || !count || !cache)
		return all_wrong(s->is, s->of, count) ? count : 0;
	vn_recording *cand = s->opened->cand ? s->opened->cand
	                                     : s->x->first[1]; /* as vn_infer_again leaves the first steps */
	const bool    some = is_some_wrong(s->is, s->of), narrow = i.format >= VN_ROLE_Q8_0 && i.format < VN_ROLE_F8;
	const int     later = list_later(cand, s->is, s->of);
	if (all_wrong(s->is, s->of, later))
		return later;
	*alike = log(SLIGHTLY_ALIKE);
	return narrow && s->policy.storage != VN_F32 && some && are_slight(cand, s->is, s->of, later) ? later : 0;
}

static vn_policy policy_of(const policy_search *s, const trial_idea *t)
{
	vn_policy p = s->policy;

	for (int i = 0; i < t->n; i++)
		p = with_idea(p, t->of[i]);
	return p;
}

/* Adds a trial, if all of its ideas are possible, with its local errors: they cost two runs of the
 * model, and the floors of spans eight more. */
static vn_status add_trial(policy_search *s, trial_idea t, vn_error *err)
{
	vn_comparison c;
	int           count = 0;

	for (int i = t.n - 1; i >= 0; i--)
		if (!(count = possible(s, t.of[i], &t.alike)))
			return VN_OK;
	for (int i = 0; i < s->is->n; i++)
		s->counts[i] = s->of[i] != VN_PART_NONE;
	const vn_bound  bound = { s->is, s->counts, count / MOST_LEFT }; /* of nearer_by */
	const vn_status st = vn_infer_again(s->x, policy_of(s, &t), VN_JUDGE_LOCAL, &bound, &c, err);
	if (!st && c.result.checkpoints.n == s->is->n) {
		t.nearer = nearer_by(s->is, &c.result.checkpoints, s->of, count);
		s->trial[s->n++] = t;
	}
	vn_comparison_close(&c);
	return st;
}

/* Is the candidate nearer to a run with this idea alone, or was that not tried? single: (n) the
 * trials of one idea. */
static bool is_nearer_alone(const trial_idea *single, int n, idea of)
{
	for (int i = 0; i < n; i++)
		if (single[i].of[0].role == of.role && single[i].of[0].format == of.format)
			return single[i].nearer > log(NEARER_ALONE);
	return true;
}

/* A cache and products: at most 3 times 6. Of two that round within one operation, the one that
 * rounds more is nearer alone; over several, small differences may grow to any other rounding. */
static vn_status list_both(policy_search *s, vn_error *err)
{
	static const vn_role_format caches[] = { VN_ROLE_F16, VN_ROLE_BF16, VN_ROLE_Q8_0 },
								floats[] = { VN_ROLE_TF32, VN_ROLE_BF16, VN_ROLE_F16 };
	trial_idea single[N_TRIALS];
	const int  n = s->n, attentions = vn_role_parts(&s->walk, VN_ROLE_PRODUCTS, s->of);
	vn_status  st = VN_OK;
	bool       alone = false;

	for (int i = 0; attentions && i < s->is->n; i++)
		alone = alone || s->of[i] == VN_PART_ALONE;
	memcpy(single, s->trial, sizeof single);
	s->n = 0;
	for (int i = 0; !st && i < 18; i++) {
		const idea of[] = { { i % 2 ? VN_ROLE_PRODUCTS : VN_ROLE_LINEAR, floats[i / 2 % 3] },
			                { VN_ROLE_CACHE, caches[i / 6] } };
		if (!alone || is_nearer_alone(single, n, of[0]) || is_nearer_alone(single, n, of[1]))
			st = add_trial(s, (trial_idea) { .of = { of[0], of[1] }, .n = 2 }, err);
	}
	return st;
}

static int count_wrong(const vn_checkpoints *all)
{
	int n = 0;

	for (int i = 0; i < all->n; i++)
		n += vn_local_judges(&all->of[i]) && vn_local_beyond(&all->of[i]);
	return n;
}

/* Compares by a trial's policy, and keeps that if it is the best so far. What is right without it
 * must not be wrong with it: `products` are also those of `linear`. */
static vn_status judge_trial(policy_search *s, trial_idea *t, vn_error *err)
{
	const vn_policy       next = policy_of(s, t);
	const int             count = possible(s, t->of[0], &t->alike);
	vn_comparison         with;
	const vn_status       st = vn_infer_again(s->x, next, VN_JUDGE_WHOLE, NULL, &with, err);
	const format_evidence e = !st && with.result.checkpoints.n == s->is->n &&
	                                  count_wrong(&with.result.checkpoints) < count_wrong(s->is)
	                              ? weigh(s->is, &with.result.checkpoints, s->of, count, t->of[0].format, t->alike)
	                              : (format_evidence) { 0 };

	t->judged = true;
	if (is_better(e, s->most) && (t->n == 1 || (e.kind == ALIKE_ROUNDED && e.score > 2 * log(ALIKE)))) {
		vn_comparison_close(&s->best);
		s->best = with;
		s->as_best = next;
		s->most = e;
	} else {
		vn_comparison_close(&with);
	}
	return st;
}

/* Adds the trials of one idea, until one is right beyond doubt. */
static vn_status try_ideas(policy_search *s, vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; !st && i < N_IDEAS && !(s->most.kind == ALIKE_ROUNDED && s->most.left == 0); i++) {
		const int before = s->n;
		st = add_trial(s, (trial_idea) { .of = { ideas[i] }, .n = 1 }, err);
		if (!st && s->n > before && s->trial[before].nearer > log(EXACTLY_ALIKE))
			st = judge_trial(s, &s->trial[before], err);
	}
	return st;
}

/* Judges by the trials to which the candidate is near enough, nearest first, until one is alike.
 * times: how often that factor. */
static vn_status judge_near(policy_search *s, double times, vn_error *err)
{
	vn_status st = VN_OK;

	while (!st && s->most.kind != ALIKE_ROUNDED) {
		trial_idea *nearest = NULL;
		for (int i = 0; i < s->n; i++)
			if (!s->trial[i].judged && s->trial[i].nearer > times * s->trial[i].alike &&
			    (!nearest || s->trial[i].nearer > nearest->nearer + log(1.1)))
				nearest = &s->trial[i];
		if (!nearest)
			break;
		st = judge_trial(s, nearest, err);
	}
	return st;
}

/* Is none alike? Then the size of the error may show a format, and a cache and products together
 * may be alike. Few tensors were captured then, and there are more of these ideas, so they must be
 * nearer. */
static vn_status judge_sizes(policy_search *s, vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; !st && i < s->n; i++)
		if (!s->trial[i].judged && s->trial[i].nearer > 0 && is_float(s->trial[i].of[0].format))
			st = judge_trial(s, &s->trial[i], err);
	st = st ? st : list_both(s, err);
	return st ? st : judge_near(s, 2, err);
}

/* ---- llama.cpp's roundings ------------------------------------------------------------------- */

static bool is_ggml_model(const vn_opened *o)
{
	return o->model && strncmp(vn_model_format(o->model), "gguf", 4) == 0;
}

/* Of a role's operations, as nearer_by; 0: there are none. */
static double nearer_in(policy_search *s, const vn_checkpoints *by, vn_role role)
{
	const int n = vn_role_parts(&s->walk, role, s->of);

	return n ? nearer_by(s->is, by, s->of, n) : 0;
}

/* The weights of a GGUF file: inputs of products may be rounded as llama.cpp does, by the format of
 * each matrix. Takes the precision in which nearly all that was wrong is right; of several the one
 * in which most is, then that to which attention is nearest. is: by *policy; *kept: judged by the
 * one taken. */
static vn_status find_ggml(const vn_inference *x, const vn_opened *judged, const vn_checkpoints *is,
                           vn_comparison *kept, vn_policy *policy, vn_error *err)
{
	static const char *const names[] = { "ggml", "ggml-kv16", "ggml-flash16" };
	policy_search            s = { .x = x, .policy = *policy, .opened = judged, .is = is };
	vn_status                st = VN_OK;
	int                      least = count_wrong(is) / MOST_LEFT;
	double                   nearest = -(double)INFINITY;

	begin_search(&s);
	for (size_t i = 0; !st && count_wrong(is) && i < sizeof names / sizeof *names; i++) {
		vn_policy     p;
		vn_comparison c;

		vn_policy_from_name(names[i], &p);
		st = vn_infer_again(x, p, VN_JUDGE_WHOLE, NULL, &c, err);
		const vn_checkpoints *by = &c.result.checkpoints;
		const bool            alike = !st && by->n == is->n && nearer_in(&s, by, VN_ROLE_LINEAR) > log(ALIKE);
		const int             left = alike ? count_wrong(by) : least + 1;
		const double          nearer = alike ? nearer_in(&s, by, VN_ROLE_PRODUCTS) : 0;
		if (left < least || (left == least && nearer > nearest)) {
			vn_comparison_close(&s.best);
			s.best = c;
			s.as_best = p;
			least = left;
			nearest = nearer;
		} else {
			vn_comparison_close(&c);
		}
	}
	if (s.best.opened.plan) {
		vn_comparison_close(kept);
		*kept = s.best;
		*policy = s.as_best;
		s.best = (vn_comparison) { 0 };
	}
	end_search(&s);
	return st;
}

/* ---- 16 bits behind logits in float32 -------------------------------------------------------- */

static const vn_checkpoint *find_logits(const vn_opened *o, const vn_checkpoints *all)
{
	const vn_checkpoint *last = NULL;

	for (int i = 0; i < all->n; i++)
		if (all->of[i].replayed && all->of[i].value >= 0 && vn_value_is_scores(o->plan, all->of[i].value))
			last = &all->of[i];
	return last;
}

/* Is some error as large as a run in the format has? Of a mixture also if it is many times that of
 * one rounding: a floor that includes another choice of experts says little. */
static bool is_large_enough(const vn_plan *plan, const vn_checkpoints *all, vn_dtype format)
{
	const double ulp = vn_dtype_ulp(format, 1);
	bool         large = false, mixture = false;

	for (int k = 0; !mixture && k < plan->n_nodes; k++)
		mixture = plan->node[k].op == VN_OP_TOP_K;
	for (int i = 0; !large && i < all->n; i++) {
		const vn_replayed *l = &all->of[i].replay;
		large = all->of[i].replayed &&
		        (vn_local_ratio(l) > LEAST_ERROR || (mixture && l->local > LEAST_SQUARE * ulp * ulp));
	}
	return large;
}

/* Are products alone in the format, whose operands the last state is? Of float16, as many digits as
 * tf32 has. */
static vn_status are_products(policy_search *s, vn_dtype format, bool *are, vn_error *err)
{
	const vn_role_format of[] = { format == VN_BF16 ? VN_ROLE_BF16 : VN_ROLE_F16, VN_ROLE_TF32 };
	vn_status            st = VN_OK;

	begin_search(s);
	for (int i = 0; !st && i < (format == VN_BF16 ? 2 : 4); i++)
		st = add_trial(s, (trial_idea) { .of = { { i % 2 ? VN_ROLE_PRODUCTS : VN_ROLE_LINEAR, of[i / 2] } }, .n = 1 },
		               err);
	for (int i = 0; i < s->n; i++)
		*are = *are || s->trial[i].nearer > log(NEARER_PRODUCTS);
	end_search(s);
	return st;
}

/* Logits in float32 do not show the format of the layers before them, but the state that they were
 * computed from does (last_state.h). If it alone was rounded, the error is too small for a run in
 * that format. all: of judged; kept: of what the search looks at, if that is not all. */
static vn_status find_storage(const vn_inference *x, const vn_opened *judged, const vn_checkpoints *all,
                              vn_comparison *kept, vn_policy *policy, vn_error *err)
{
	const vn_checkpoint  *logits = find_logits(judged, all);
	const bool            cut = kept->result.checkpoints.n > 0;
	const vn_checkpoints *is = cut ? &kept->result.checkpoints : all;
	policy_search         s = { .x = x, .policy = *policy, .opened = cut ? &kept->opened : judged, .is = is };
	vn_dtype              format = VN_F32;
	bool                  products = false;
	vn_policy             p;
	vn_comparison         c;
	vn_status             st = logits ? vn_last_state_format(judged, logits, &format, err) : VN_OK;

	if (st || format == VN_F32 || !vn_policy_from_name(vn_dtype_name(format), &p) ||
	    (st = are_products(&s, format, &products, err)) || products)
		return st;
	st = vn_infer_again(x, p, VN_JUDGE_WHOLE, NULL, &c, err);
	const bool taken = !st && c.result.checkpoints.n == is->n &&
	                   is_large_enough(judged->plan, &c.result.checkpoints, format);
	if (taken)
		*policy = p;
	vn_comparison_close(taken ? kept : &c);
	if (taken)
		*kept = c;
	return st;
}

int vn_compare_wrong_later(const vn_opened *o, const vn_checkpoints *all)
{
	const vn_step *step;
	const int      n = vn_recording_steps(o->ref, &step);
	int            first = INT_MAX;

	for (int i = 0; i < all->n; i++)
		if (vn_local_judges(&all->of[i]) && vn_local_beyond(&all->of[i]) && all->of[i].step < first)
			first = all->of[i].step;
	return n > VN_INFER_STEPS && first != INT_MAX && first > step[VN_INFER_STEPS - 1].number ? first : -1;
}

bool vn_compare_policy_ends(const vn_opened *o, const vn_checkpoints *all, vn_policy policy, int from)
{
	policy_search s = { .opened = o, .is = all };
	bool          ends = false;

	begin_search(&s);
	for (int role = 0; !ends && role < VN_N_ROLES; role++) {
		if (!policy.role[role])
			continue;
		int n = 0;
		vn_role_parts(&s.walk, (vn_role)role, s.of);
		for (int i = 0; i < all->n; i++) {
			s.of[i] = all->of[i].step < from ? VN_PART_NONE : s.of[i];
			n += s.of[i] != VN_PART_NONE;
		}
		ends = all_wrong(all, s.of, n);
	}
	end_search(&s);
	return ends;
}

/* Can some format be the candidate's? By what was wrong alone, and without a run. */
static bool is_some_possible(const vn_inference *x, const vn_opened *judged, const vn_checkpoints *all,
                             vn_policy policy)
{
	policy_search s = { .x = x, .policy = policy, .opened = judged, .is = all };
	bool          some = (is_ggml_model(judged) || x->heads) && policy.storage == VN_F32 && !policy.products;
	double        alike;

	begin_search(&s);
	for (int i = 0; !some && i < N_IDEAS; i++)
		some = possible(&s, ideas[i], &alike) > 0;
	end_search(&s);
	return some;
}

vn_status vn_compare_find_policy(vn_inference *x, const vn_opened *judged, const vn_checkpoints *all, vn_policy *policy,
                                 vn_error *err)
{
	vn_comparison kept = { 0 };
	const bool    cuts = vn_infer_is_long(x->k, judged);
	if (!cuts && !is_some_possible(x, judged, all, *policy))
		return VN_OK;
	x->vocab = vn_infer_is_wide(x->k, judged) ? judged->plan->vocab : 0;
	vn_status st = cuts || x->vocab ? vn_infer_again(x, *policy, VN_JUDGE_WHOLE, NULL, &kept, err) : VN_OK;

	if (!st && is_ggml_model(judged) && policy->storage == VN_F32 && !policy->products) {
		const bool cut = kept.result.checkpoints.n > 0;
		st = find_ggml(x, cut ? &kept.opened : judged, cut ? &kept.result.checkpoints : all, &kept, policy, err);
	}
	if (!st && x->heads && policy->storage == VN_F32 && !policy->products)
		st = find_storage(x, judged, all, &kept, policy, err);
	for (bool found = true; !st && found;) {
		const bool    again = kept.result.checkpoints.n > 0;
		policy_search s = { .x = x,
			                .policy = *policy,
			                .opened = again ? &kept.opened : judged,
			                .is = again ? &kept.result.checkpoints : all };
		begin_search(&s);
		if (!(st = try_ideas(&s, err)) && !(st = judge_near(&s, 1, err)) && s.most.kind != ALIKE_ROUNDED)
			st = judge_sizes(&s, err);
		found = !st && s.most.kind;
		if (found) {
			vn_comparison_close(&kept);
			kept = s.best;
			s.best = (vn_comparison) { 0 };
			*policy = s.as_best;
		}
		end_search(&s);
	}
	vn_comparison_close(&kept);
	for (int i = 0; i < 2; i++) {
		vn_recording_close(x->first[i]);
		x->first[i] = NULL;
	}
	return st;
}
