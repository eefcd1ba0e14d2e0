/* compare_judge.c: compares one pair and, where nobody declared the candidate's precision, finds
 * the formats of its roles.
 *
 * Real engines mix formats: a float32 run with a float16 cache, or with products in bfloat16.
 * Judged as float32, the operations of that role are wrong in every layer and step. If so, the
 * comparison is repeated with one role in one format after the other (libref/plan/policy.h), and
 * the policy is taken in which these operations are right. It needs evidence that the format was
 * used, not only that its floor is wide enough:
 *
 *   alike     the candidate is far nearer to what the format gives than to what none gives: its
 *             numbers were rounded as the policy says
 *   as large  or, if many roundings lie between captured tensors, so that no bit of them is known:
 *             the candidate is as far from a run without the format as a run with it is
 *
 * A deviation in one layer or step is no policy: then the operations of the other layers are wrong
 * under it. Where the precision was declared, the declaration rules, and the policy found is only
 * named in a warning.
 */
#include "compare/compare_line.h"

#include "compare/chapters/chapters.h"
#include "compare/floor/precision.h"
#include "compare/replay/local.h"
#include "capture/recording/shown.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ALIKE: mean factor by which the operations of a role must be nearer. AS_LARGE_WITHIN: the factor
 * between an error and the format's, if it is as large. MOST_LEFT: of the role's operations, at
 * most one in so many may remain wrong: they have a fault of their own. */
#define ALIKE           4.0
#define AS_LARGE_WITHIN 2.0
enum { MOST_LEFT = 5, TENSORS = 64 };

typedef struct idea {
	vn_role        role;
	vn_role_format format;
} idea;

/* In the order of preference among equals. */
static const idea ideas[] = {
	{ VN_ROLE_CACHE, VN_ROLE_F16 },     { VN_ROLE_CACHE, VN_ROLE_BF16 },   { VN_ROLE_PRODUCTS, VN_ROLE_TF32 },
	{ VN_ROLE_PRODUCTS, VN_ROLE_BF16 }, { VN_ROLE_PRODUCTS, VN_ROLE_F16 }, { VN_ROLE_LINEAR, VN_ROLE_TF32 },
	{ VN_ROLE_LINEAR, VN_ROLE_BF16 },   { VN_ROLE_LINEAR, VN_ROLE_F16 },   { VN_ROLE_WEIGHTS, VN_ROLE_BF16 },
	{ VN_ROLE_WEIGHTS, VN_ROLE_F16 },   { VN_ROLE_SOFTMAX, VN_ROLE_F16 },  { VN_ROLE_SOFTMAX, VN_ROLE_BF16 },
	{ VN_ROLE_CACHE, VN_ROLE_Q8_0 },    { VN_ROLE_CACHE, VN_ROLE_INT8 },   { VN_ROLE_CACHE, VN_ROLE_F8 },
	{ VN_ROLE_PRODUCTS, VN_ROLE_INT8 }, { VN_ROLE_PRODUCTS, VN_ROLE_F8 },  { VN_ROLE_WEIGHTS, VN_ROLE_INT8 },
	{ VN_ROLE_WEIGHTS, VN_ROLE_F8 },    { VN_ROLE_WEIGHTS, VN_ROLE_Q8_0 },
};
enum { N_IDEAS = sizeof ideas / sizeof *ideas };

/* ---- which checkpoints a role decides -------------------------------------------------------- */

/* How a role's operation takes part in a checkpoint: not; among others of a span; alone. */
typedef enum role_part { PART_NONE, PART_AMONG, PART_ALONE } role_part;

typedef struct role_walk {
	const vn_comparison *c;
	const vn_plan       *plan;
	bool                *known; /* (values), of the step: captured */
	bool                *seen;  /* (nodes) */
	int                  step;  /* of known; -1: none yet */
} role_walk;

static bool op_of_role(vn_op op, vn_role role)
{
	return role == VN_ROLE_CACHE || role == VN_ROLE_SOFTMAX ? op == VN_OP_ATTENTION : op == VN_OP_LINEAR;
}

/* Is there such an operation between the value and the captured ones before it? */
static bool span_has(role_walk *s, int value, vn_role role)
{
	const int node = s->plan->value[value].node;

	if (node < 0 || s->seen[node])
		return false;
	s->seen[node] = true;
	const vn_node *n = &s->plan->node[node];
	if (op_of_role(n->op, role))
		return true;
	for (int i = 0; i < n->n_in; i++) {
		const int in = vn_plan_root(s->plan, n->in[i]);
		if (!s->known[in] && span_has(s, in, role))
			return true;
	}
	return false;
}

static void look_at_step(role_walk *s, int step)
{
	memset(s->known, 0, (size_t)s->plan->n_values * sizeof *s->known);
	s->step = step;
	for (int i = 0; i < s->c->result.n_checkpoints; i++) {
		const vn_checkpoint *p = &s->c->result.checkpoint[i];
		if (p->step == step && p->replayed && p->value >= 0)
			s->known[vn_plan_root(s->plan, p->value)] = true;
	}
}

static role_part part_of(role_walk *s, const vn_checkpoint *p, vn_role role)
{
	if (!vn_local_judges(p) || p->value < 0)
		return PART_NONE;
	if (p->step != s->step)
		look_at_step(s, p->step);
	memset(s->seen, 0, (size_t)s->plan->n_nodes * sizeof *s->seen);
	const int value = vn_plan_root(s->plan, p->value), node = s->plan->value[value].node;
	if (node < 0 || !span_has(s, value, role))
		return PART_NONE;
	return p->replay.span > 1                                                                 ? PART_AMONG
	       : s->plan->node[node].op == VN_OP_ATTENTION && s->plan->node[node].out[0] != value ? PART_NONE
	                                                                                          : PART_ALONE;
}

/* Fills part (checkpoints). If the role's operation stands alone somewhere, only these checkpoints
 * count. Returns how many count. */
static int list_parts(role_walk *s, vn_role role, role_part *of)
{
	int alone = 0, among = 0;

	for (int i = 0; i < s->c->result.n_checkpoints; i++) {
		of[i] = part_of(s, &s->c->result.checkpoint[i], role);
		alone += of[i] == PART_ALONE;
		among += of[i] == PART_AMONG;
	}
	for (int i = 0; alone && i < s->c->result.n_checkpoints; i++)
		of[i] = of[i] == PART_AMONG ? PART_NONE : of[i];
	return alone ? alone : among;
}

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

/* was: judged without the format; is: with it. */
static format_evidence weigh(const vn_comparison *was, const vn_comparison *is, const role_part *of, int n,
                             vn_role_format f)
{
	double size = 0, token = 0, nearer = 0;
	int    left = 0;

	for (int i = 0; i < was->result.n_checkpoints; i++) {
		const vn_replayed *p = &was->result.checkpoint[i].replay, *q = &is->result.checkpoint[i].replay;
		if (!of[i])
			continue;
		if (!vn_local_judges(&is->result.checkpoint[i]) || !(q->floor > 0) || !(q->floor_token > 0))
			return (format_evidence) { 0 };
		left += vn_local_beyond(&is->result.checkpoint[i]);
		size += logarithm(p->local / q->floor) / n;
		token += logarithm(p->local_token / q->floor_token) / n;
		nearer += logarithm(p->local / fmax(q->local, q->floor * 1e-3)) / n;
	}
	if (left * MOST_LEFT > n)
		return (format_evidence) { 0 };
	if (nearer > log(ALIKE))
		return (format_evidence) { ALIKE_ROUNDED, nearer, left };
	return is_float(f) && fabs(size) <= log(AS_LARGE_WITHIN) && fabs(token) <= log(AS_LARGE_WITHIN)
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
static bool all_wrong(const vn_comparison *c, const role_part *of, int n)
{
	int wrong = 0;

	for (int i = 0; i < c->result.n_checkpoints; i++)
		wrong += of[i] && vn_local_beyond(&c->result.checkpoint[i]);
	return n > 0 && (n - wrong) * MOST_LEFT <= n;
}

/* ---- one comparison -------------------------------------------------------------------------- */

typedef struct inference {
	const vn_compare_line *k;
	char                  *chosen;
	size_t                 room;
} inference;

/* Compares with this policy, without explanations. Close *c afterwards, also after a failure. */
static vn_status judge_as(const inference *x, const vn_comparison *like, vn_policy policy, vn_comparison *c,
                          vn_error *err)
{
	*c = (vn_comparison) { .request = { .options = like->request.options,
		                                .again = like->request.again,
		                                .infers = true,
		                                .inferred = policy,
		                                .unexplained = true } };
	const vn_status st = vn_compare_open(x->k, c, NULL, x->chosen, x->room, err);
	return st ? st : vn_compare(c, err);
}

/* Has the role a format, by this or by another name? */
static bool is_taken(vn_policy p, vn_role role)
{
	return p.role[role] || (role == VN_ROLE_LINEAR && p.role[VN_ROLE_PRODUCTS]) ||
	       (role == VN_ROLE_PRODUCTS && p.role[VN_ROLE_LINEAR]);
}

/* What a search tries its ideas with. */
typedef struct policy_search {
	const inference *x;
	role_walk        walk;    /* of *is */
	role_part       *of[2];   /* (checkpoints) */
	vn_policy        policy;  /* of *is */
	vn_comparison   *is;      /* judged by it */
	vn_comparison    best;    /* with the best idea so far; most.kind NO_EVIDENCE: none */
	vn_policy        as_best; /* its policy */
	format_evidence  most;
} policy_search;

static vn_status begin_search(policy_search *s, vn_error *err)
{
	const size_t   n = (size_t)s->is->result.n_checkpoints + 1;
	const vn_plan *plan = s->is->opened.plan;

	s->walk = (role_walk) { .c = s->is, .plan = plan, .step = -1 };
	s->walk.known = malloc((size_t)plan->n_values * sizeof *s->walk.known + 1);
	s->walk.seen = malloc((size_t)plan->n_nodes * sizeof *s->walk.seen + 1);
	s->of[0] = malloc(n * sizeof *s->of[0]);
	s->of[1] = malloc(n * sizeof *s->of[1]);
	return s->of[0] && s->of[1] && s->walk.known && s->walk.seen
	           ? VN_OK
	           : vn_fail(err, VN_ERR_NOMEM, "no memory to infer formats");
}

static void end_search(policy_search *s)
{
	vn_comparison_close(&s->best);
	free(s->walk.known);
	free(s->walk.seen);
	free(s->of[0]);
	free(s->of[1]);
}

/* Fills `of` if the idea is possible: its role has no format yet, and all of its operations are
 * wrong. Returns how many checkpoints count, or 0. */
static int possible(policy_search *s, idea i, role_part *of)
{
	const int count = is_taken(s->policy, i.role) ? 0 : list_parts(&s->walk, i.role, of);
	return all_wrong(s->is, of, count) ? count : 0;
}

/* Compares with `next`, and keeps that if it is the best so far, and its evidence `least` or
 * more. */
static vn_status try_policy(policy_search *s, vn_policy next, const role_part *of, int count, idea i,
                            format_evidence least, vn_error *err)
{
	vn_comparison         with;
	const vn_status       st = judge_as(s->x, s->is, next, &with, err);
	const format_evidence e = !st && with.result.n_checkpoints == s->is->result.n_checkpoints
	                              ? weigh(s->is, &with, of, count, i.format)
	                              : (format_evidence) { 0 };

	if (is_better(e, s->most) && e.kind >= least.kind && (e.kind > least.kind || e.score >= least.score)) {
		vn_comparison_close(&s->best);
		s->best = with;
		s->as_best = next;
		s->most = e;
	} else {
		vn_comparison_close(&with);
	}
	return st;
}

static vn_status try_ideas(policy_search *s, vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; !st && i < N_IDEAS; i++) {
		const int count = possible(s, ideas[i], s->of[0]);
		vn_policy next = s->policy;
		next.role[ideas[i].role] = ideas[i].format;
		if (count)
			st = try_policy(s, next, s->of[0], count, ideas[i], (format_evidence) { 0 }, err);
	}
	return st;
}

static bool is_cache_beside_products(idea cache, idea products)
{
	return cache.role == VN_ROLE_CACHE && (is_float(cache.format) || cache.format == VN_ROLE_Q8_0) &&
	       (products.role == VN_ROLE_PRODUCTS || products.role == VN_ROLE_LINEAR) && is_float(products.format);
}

/* If one format is known by the size of its error alone, two together may be alike: a cache and
 * products. Few tensors were captured then, and there are more of these ideas, so they must be
 * nearer. */
static vn_status try_both(policy_search *s, vn_error *err)
{
	const format_evidence least = { ALIKE_ROUNDED, 2 * log(ALIKE), 0 };
	vn_status             st = VN_OK;

	for (int i = 0; !st && s->most.kind == AS_LARGE && i < N_IDEAS; i++)
		for (int j = 0; !st && j < N_IDEAS; j++) {
			if (!is_cache_beside_products(ideas[i], ideas[j]) || !possible(s, ideas[i], s->of[1]))
				continue;
			const int count = possible(s, ideas[j], s->of[0]);
			vn_policy next = s->policy;
			next.role[ideas[i].role] = ideas[i].format;
			next.role[ideas[j].role] = ideas[j].format;
			if (count)
				st = try_policy(s, next, s->of[0], count, ideas[j], least, err);
		}
	return st;
}

/* Finds the policy, beginning with that of the comparison c. */
static vn_status find_policy(const inference *x, const vn_comparison *c, vn_policy *policy, vn_error *err)
{
	vn_comparison is = { 0 };
	vn_status     st = judge_as(x, c, *policy, &is, err);

	for (bool found = true; !st && found;) {
		policy_search s = { .x = x, .policy = *policy, .is = &is };
		if (!(st = begin_search(&s, err)) && !(st = try_ideas(&s, err)))
			st = try_both(&s, err);
		found = !st && s.most.kind;
		if (found) {
			vn_comparison_close(&is);
			is = s.best;
			s.best = (vn_comparison) { 0 };
			*policy = s.as_best;
		}
		end_search(&s);
	}
	vn_comparison_close(&is);
	return st;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* *coarse: the numbers themselves are of a coarser format than the precision: that is said
 * elsewhere (precision.h). */
static vn_status look_at_numbers(vn_comparison *c, vn_policy said, bool *coarse, vn_error *err)
{
	vn_shown_precision shown;
	const vn_status    st = vn_shown_format(c->opened.cand, TENSORS, &shown, err);

	*coarse = !st && shown.votes && vn_dtype_digits(shown.format) < vn_dtype_digits(said.storage);
	return st;
}

static bool can_infer(const vn_compare_line *k, const vn_comparison *c, vn_policy *policy)
{
	const vn_compare_options *o = c->request.options;

	return !c->result.within && c->opened.model && c->opened.plan && c->result.replayed && !o->precision &&
	       !o->floor_policy && !o->bitwise && !k->limits && !(o->allow & (VN_ALLOW_ITSELF | VN_ALLOW_WEIGHTS)) &&
	       vn_policy_from_word(vn_precision_of(c->opened.cand), policy) && !vn_policy_mixed(*policy);
}

static void say_inferred(vn_comparison *c, vn_policy policy, bool declared)
{
	char words[160];

	vn_policy_words(policy, words, sizeof words);
	if (declared)
		vn_lines_add(
			&c->result.warnings,
			"the candidate is declared as %s, but its numbers are those of a run with %s: --precision %s judges "
			"it as that",
			vn_precision_of(c->opened.cand), words, vn_policy_name(policy));
	else
		vn_lines_add(&c->result.warnings,
		             "nobody declared the candidate's formats; it is judged as its numbers are: %s (--precision %s "
		             "declares it)",
		             words, vn_policy_name(policy));
}

/* Closes c and compares again, by the policy found. */
static vn_status judge_by(const inference *x, vn_comparison *c, vn_policy policy, vn_error *err)
{
	const vn_request was = c->request;

	vn_comparison_close(c);
	*c = (vn_comparison) { .request = {
							   .options = was.options, .again = was.again, .infers = true, .inferred = policy } };
	const vn_status st = vn_compare_open(x->k, c, NULL, x->chosen, x->room, err);
	return st ? st : vn_compare(c, err);
}

vn_status vn_compare_infer(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	const inference x = { k, chosen, room };
	char            kept[128];
	vn_policy       policy;
	vn_status       st = VN_OK;

	c->request.unexplained = false;
	bool coarse = true;
	if (can_infer(k, c, &policy) && (st = look_at_numbers(c, policy, &coarse, err)))
		return st;
	if (coarse)
		return vn_chapter_explain(c, err);
	const bool declared = vn_precision_declared(c->opened.cand);
	snprintf(kept, sizeof kept, "%s", chosen);
	if ((st = find_policy(&x, c, &policy, err)))
		return st;
	if (vn_policy_mixed(policy) && !declared && !(st = judge_by(&x, c, policy, err)))
		say_inferred(c, policy, false);
	else if (!st) {
		snprintf(chosen, room, "%s", kept);
		if (vn_policy_mixed(policy))
			say_inferred(c, policy, true);
		st = vn_chapter_explain(c, err);
	}
	return st;
}

static vn_status judge_pair(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	vn_status st = vn_compare_open(k, c, NULL, chosen, room, err);

	c->request.unexplained = true;
	if (st || (st = vn_compare(c, err)))
		return st;
	return vn_compare_infer(k, c, chosen, room, err);
}

vn_status vn_compare_judge(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	return (k->absent ? vn_compare_judge_alone : judge_pair)(k, c, chosen, room, err);
}
