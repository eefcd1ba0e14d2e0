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
 * Of logits in float32 alone, the layers before may have been computed in 16 bits.
 *
 * A deviation in one layer or step is no policy: then the operations of the other layers are wrong
 * under it. Nor need all steps be compared with every format: the first ones are enough, or the
 * last ones, if only later steps are wrong. Nor all tokens of a large vocabulary
 * (libref/plan/vocab_part.h). A format is dropped once too many operations are farther.
 */
#include "compare/compare_infer.h"

#include "compare/chapters/compare.h"
#include "compare/replay/local.h"

#include "capture/recording/derive.h"
#include "capture/view/calls.h"
#include "capture/view/vocab_view.h"
#include "libref/base/alloc.h"
#include "libref/plan/vocab_part.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ALIKE: mean factor by which the operations of a role must be nearer; EXACTLY_ALIKE: of bits that
 * are known; SLIGHTLY_ALIKE: of an 8-bit cache (measured in bfloat16: 2.3; without it 0.3), over
 * ENOUGH operations; NEARER_ALONE: by one of two formats (2 if both round alike).
 * AS_LARGE_WITHIN: the factor between an error and the format's, if it is as large. MOST_LEFT: of
 * the role's operations, at most one in so many may remain wrong, by a fault of its own. */
#define ALIKE           4.0
#define SLIGHTLY_ALIKE  1.5
#define EXACTLY_ALIKE   1e4
#define NEARER_ALONE    1.1
#define AS_LARGE_WITHIN 2.0
#define LIKE_ERRORS     0.55
#define LIKE_SIZES      4.0
enum { MOST_LEFT = 5, ENOUGH = 8 };
enum { MOST_STEPS = 32 }; /* that are compared with a format */

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

/* ---- which checkpoints a role decides -------------------------------------------------------- */

/* How a role's operation takes part in a checkpoint: not; among others of a span; alone. */
typedef enum role_part { PART_NONE, PART_AMONG, PART_ALONE } role_part;

typedef struct role_walk {
	const vn_checkpoints *all;
	const vn_plan        *plan;
	bool                 *known; /* (values), of the step: captured */
	bool                 *seen;  /* (nodes) */
	int                   step;  /* of known; -1: none yet */
} role_walk;

/* Attention decides between `products` and `linear`. */
static bool op_of_role(vn_op op, vn_role role)
{
	return op == (role == VN_ROLE_LINEAR || role == VN_ROLE_WEIGHTS ? VN_OP_LINEAR : VN_OP_ATTENTION);
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
	for (int i = 0; i < s->all->n; i++) {
		const vn_checkpoint *p = &s->all->of[i];
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

	for (int i = 0; i < s->all->n; i++) {
		of[i] = part_of(s, &s->all->of[i], role);
		alone += of[i] == PART_ALONE;
		among += of[i] == PART_AMONG;
	}
	for (int i = 0; alone && i < s->all->n; i++)
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

/* Returns the logarithm of the mean factor by which the n operations listed are nearer; -INFINITY
 * if some cannot be judged, or too many are farther. */
static double nearer_by(const vn_checkpoints *was, const vn_checkpoints *is, const role_part *of, int n)
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
static format_evidence weigh(const vn_checkpoints *was, const vn_checkpoints *is, const role_part *of, int n,
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
static bool all_wrong(const vn_checkpoints *all, const role_part *of, int n)
{
	int wrong = 0;

	for (int i = 0; i < all->n; i++)
		wrong += of[i] && vn_local_beyond(&all->of[i]);
	return n > 0 && (n - wrong) * MOST_LEFT <= n;
}

/* Leaves the calls that read an earlier one's cache in the list, and returns how many. */
static int list_later(vn_recording *cand, const vn_checkpoints *all, role_part *of)
{
	int n = 0;

	for (int i = 0; i < all->n; i++) {
		const vn_step *step = vn_recording_step(cand, all->of[i].step);
		if (!step || !step->position)
			of[i] = PART_NONE;
		n += of[i] != PART_NONE;
	}
	return n;
}

/* Is half of n listed calls off by more than a floor? */
static bool are_slight(const vn_checkpoints *all, const role_part *of, int n)
{
	int off = 0;

	for (int i = 0; i < all->n; i++)
		off += of[i] && vn_local_ratio(&all->of[i].replay) > 1;
	return n >= ENOUGH && 2 * off >= n;
}

static bool is_some_wrong(const vn_checkpoints *all, const role_part *of)
{
	bool wrong = false;

	for (int i = 0; i < all->n; i++)
		wrong = wrong || (of[i] && vn_local_beyond(&all->of[i]));
	return wrong;
}

/* ---- one comparison -------------------------------------------------------------------------- */

/* Can a part of the recordings be compared? The same options would open other files, or rows,
 * again. */
static bool can_cut(const vn_compare_line *k)
{
	return !k->floor && !k->replayed && k->sides.batch_row < 0 && k->sides.ref_batch_row < 0;
}

static bool is_long(const vn_compare_line *k, const vn_opened *o)
{
	const vn_step *step;
	return vn_recording_steps(o->ref, &step) > MOST_STEPS && can_cut(k);
}

static bool is_wide(const vn_compare_line *k, const vn_opened *o)
{
	return o->plan && vn_plan_has_vocab_part(o->plan) && can_cut(k);
}

/* Leaves the steps whose calls these are. Like vn_calls_join. */
static vn_status cut_steps(vn_recording **r, const vn_call *call, vn_error *err)
{
	const int32_t *ids, *positions;
	char           one[VN_NAME_MAX];
	int            left = 0;
	vn_status      st = vn_calls_join(r, call, MOST_STEPS, &left, one, err);
	int64_t        n = 0;

	if (st)
		return st;
	for (int i = 0; i < MOST_STEPS; i++)
		n += call[i].tokens;
	if (vn_recording_tokens(*r, &ids, &positions) < n)
		return VN_OK;
	int32_t *kept[2] = { vn_alloc((size_t)n, sizeof **kept), vn_alloc((size_t)n, sizeof **kept) };
	memcpy(kept[0], ids, (size_t)n * sizeof *ids);
	memcpy(kept[1], positions, (size_t)n * sizeof *positions);
	vn_derive_tokens(*r, kept[0], kept[1], n);
	return VN_OK;
}

/* Leaves the first steps of both recordings, if those of either follow each other; later: the last
 * ones, behind one of all tokens before. */
static vn_status keep_some_steps(vn_opened *o, bool later, bool *cut, vn_error *err)
{
	const vn_step *step;
	vn_call        call[MOST_STEPS];

	const int behind = vn_recording_steps(o->ref, &step) - MOST_STEPS;
	for (int i = 0; i < MOST_STEPS; i++) {
		const vn_step *s = &step[i + (later && i ? behind : 0)];
		call[i] = (vn_call) { s->number, s->position, s->tokens };
	}
	if (later)
		call[0].tokens = call[1].position - call[0].position;
	*cut = vn_calls_fit(o->ref, call, MOST_STEPS) && vn_calls_fit(o->cand, call, MOST_STEPS);
	const vn_status st = *cut ? cut_steps(&o->ref, call, err) : VN_OK;
	return st || !*cut ? st : cut_steps(&o->cand, call, err);
}

/* Opens these steps. They are kept in x->first, because opening all takes longer than what is
 * done with them. */
static vn_status open_steps(const vn_inference *x, vn_comparison *c, bool *cut, vn_error *err)
{
	vn_recording *const first[2] = { x->first[0], x->first[1] };
	vn_compare_line     k = *x->k;

	*cut = first[0] != NULL;
	if (*cut) {
		k.n_ranks = 1;
		k.sides.n_names = k.sides.n_ref_names = 0;
		x->first[0] = x->first[1] = NULL; /* the comparison's, also after a failure */
		return vn_compare_open(&k, c, first, x->chosen, x->room, err);
	}
	vn_status st = vn_compare_open(x->k, c, NULL, x->chosen, x->room, err);
	if (!st && is_long(x->k, &c->opened))
		st = keep_some_steps(&c->opened, x->later, cut, err);
	*cut = *cut || x->vocab;
	if (!st && x->vocab && !(st = vn_vocab_view(&c->opened.ref, x->vocab, err)))
		st = vn_vocab_view(&c->opened.cand, x->vocab, err);
	return st;
}

/* LOCAL: only the local errors are wanted. Above: of a reference that rounds as others do; the rest
 * is as_others. */
typedef enum judged_part { WHOLE, LOCAL } judged_part;

/* Compares these steps with this policy, without explanations. Close *c afterwards, also after a
 * failure. */
static vn_status judge_as(const vn_inference *x, vn_policy policy, int part, const vn_bound *bound, vn_comparison *c,
                          vn_error *err)
{
	*c = (vn_comparison) { .opened.request = { .options = x->options,
		                                       .again = x->again,
		                                       .infers = true,
		                                       .inferred = policy,
		                                       .unexplained = true,
		                                       .only_local = part != WHOLE,
		                                       .sampled = x->vocab > 0,
		                                       .bound = bound,
		                                       .as_others = (vn_like_others)(part > LOCAL ? part - LOCAL : 0) } };
	bool      cut = false;
	vn_status st = open_steps(x, c, &cut, err);
	st = st ? st : vn_compare(c, err);
	if (cut && c->opened.ref && c->opened.cand) {
		x->first[0] = c->opened.ref;
		x->first[1] = c->opened.cand;
		c->opened.ref = c->opened.cand = NULL;
	}
	return st;
}

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
	role_walk             walk;   /* of *is */
	role_part            *of;     /* (checkpoints) */
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
	const vn_plan *plan = s->opened->plan;

	s->walk = (role_walk) { .all = s->is, .plan = plan, .step = -1 };
	s->walk.known = vn_alloc((size_t)plan->n_values, sizeof *s->walk.known);
	s->walk.seen = vn_alloc((size_t)plan->n_nodes, sizeof *s->walk.seen);
	s->of = vn_alloc((size_t)s->is->n, sizeof *s->of);
	s->counts = vn_alloc((size_t)s->is->n, sizeof *s->counts);
}

static void end_search(policy_search *s)
{
	vn_comparison_close(&s->best);
	VN_FREE(s->walk.known, s->walk.seen, s->of, s->counts);
}

/* Fills s->of if the idea is possible: its role has no format yet, and all of its operations are
 * wrong; of a cache, those of later calls, if each call reads its own rows as they are. Returns how
 * many checkpoints count, or 0. *alike: as in weigh. */
static int possible(policy_search *s, idea i, double *alike)
{
	const bool cache = i.role == VN_ROLE_CACHE || i.role == VN_CACHE_OF_PROMPT;
	const bool calls = s->is->n && s->is->of[0].step != s->is->of[s->is->n - 1].step; /* than the first */
	const bool never = is_taken(s->policy, i) || (i.role == VN_CACHE_OF_PROMPT && !calls);
	const int  count = never ? 0 : list_parts(&s->walk, i.role, s->of);

	*alike = log(ALIKE);
	if (all_wrong(s->is, s->of, count) || !count || !cache)
		return all_wrong(s->is, s->of, count) ? count : 0;
	vn_recording *cand = s->opened->cand ? s->opened->cand : s->x->first[1]; /* as judge_as leaves the first steps */
	const bool    some = is_some_wrong(s->is, s->of), narrow = i.format >= VN_ROLE_Q8_0 && i.format < VN_ROLE_F8;
	const int     later = list_later(cand, s->is, s->of);
	if (all_wrong(s->is, s->of, later))
		return later;
	*alike = log(SLIGHTLY_ALIKE);
	return narrow && s->policy.storage != VN_F32 && some && are_slight(s->is, s->of, later) ? later : 0;
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
		s->counts[i] = s->of[i] != PART_NONE;
	const vn_bound  bound = { s->is, s->counts, count / MOST_LEFT }; /* of nearer_by */
	const vn_status st = judge_as(s->x, policy_of(s, &t), LOCAL, &bound, &c, err);
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
	const int  n = s->n, attentions = list_parts(&s->walk, VN_ROLE_PRODUCTS, s->of);
	vn_status  st = VN_OK;
	bool       alone = false;

	for (int i = 0; attentions && i < s->is->n; i++)
		alone = alone || s->of[i] == PART_ALONE;
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
	const vn_status       st = judge_as(s->x, next, WHOLE, NULL, &with, err);
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
	const int n = list_parts(&s->walk, role, s->of);

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
		st = judge_as(x, p, WHOLE, NULL, &c, err);
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

/* How alike errors are by chance, as Fisher's z: one in 70; a search asks for one format five
 * times. */
#define BY_CHANCE   2.2
#define LIKE_ENOUGH 0.9 /* of however few numbers */

/* Are the candidate's errors like those of a run in another storage format, and about as large, by
 * the mean cosine between both in a checkpoint? Few independent numbers are like any others; and a
 * row that has other experts counts no more than others. is: judged without the format; by: with
 * it. */
static bool is_like(const vn_checkpoints *is, const vn_checkpoints *by)
{
	double cosine = 0, size = 0, variance = 0;
	int    n = 0;

	for (int i = 0; i < is->n && i < by->n; i++) {
		const vn_replayed *p = &is->of[i].replay, *q = &by->of[i].replay;
		if (!is->of[i].replayed || !by->of[i].replayed || p->bad || q->bad || !(p->local > 0 && q->floor > 0))
			continue;
		cosine += (p->local + q->floor - q->local) / (2 * sqrt(p->local * q->floor));
		size += log(p->local / q->floor);
		variance += 1 / fmax(1, (double)p->independent_numbers);
		n++;
	}
	if (!n || fabs(size / n) > log(LIKE_SIZES))
		return false;
	const double numbers = (double)n * n / variance;
	return cosine / n > fmax(LIKE_ERRORS, fmin(LIKE_ENOUGH, tanh(BY_CHANCE / sqrt(fmax(1, numbers - 2)))));
}

/* Logits in float32 do not show the format of the layers before them, but its roundings do: of two
 * runs in one format, many fall on the same numbers. Takes a format whose errors the candidate's
 * are like, as the reference rounds or as others do, if nothing is wrong in it. */
static vn_status find_storage(const vn_inference *x, const vn_checkpoints *is, vn_comparison *kept, vn_policy *policy,
                              vn_error *err)
{
	static const char *const names[] = { "bf16", "f16" };
	static const int         as[] = { LOCAL + VN_LIKE_OTHERS, LOCAL + (VN_LIKE_OTHERS | VN_NOT_NORMS),
		                              LOCAL + (VN_LIKE_OTHERS | VN_NOT_ATTENTION),
		                              LOCAL + (VN_LIKE_OTHERS | VN_NOT_NORMS | VN_NOT_ATTENTION), LOCAL };
	enum { N_NAMES = sizeof names / sizeof *names, N_AS = sizeof as / sizeof *as };
	vn_policy     p, best = *policy;
	vn_comparison c;
	vn_status     st = VN_OK;
	bool          like = false;

	for (int i = 0; !st && !like && i < N_AS * N_NAMES; i++) {
		vn_policy_from_name(names[i % N_NAMES], &p);
		st = judge_as(x, p, as[i / N_NAMES], NULL, &c, err);
		like = !st && c.result.checkpoints.n == is->n && is_like(is, &c.result.checkpoints);
		best = like ? p : best;
		vn_comparison_close(&c);
	}
	if (st || vn_policy_same(best, *policy))
		return st;
	st = judge_as(x, best, WHOLE, NULL, &c, err);
	const bool right = !st && c.result.checkpoints.n == is->n && count_wrong(&c.result.checkpoints) == 0;
	if (right)
		*policy = best;
	vn_comparison_close(right ? kept : &c);
	if (right)
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
	return n > MOST_STEPS && first != INT_MAX && first > step[MOST_STEPS - 1].number ? first : -1;
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
		list_parts(&s.walk, (vn_role)role, s.of);
		for (int i = 0; i < all->n; i++) {
			s.of[i] = all->of[i].step < from ? PART_NONE : s.of[i];
			n += s.of[i] != PART_NONE;
		}
		ends = all_wrong(all, s.of, n);
	}
	end_search(&s);
	return ends;
}

vn_status vn_compare_find_policy(vn_inference *x, const vn_opened *judged, const vn_checkpoints *all, vn_policy *policy,
                                 vn_error *err)
{
	vn_comparison kept = { 0 };
	x->vocab = is_wide(x->k, judged) ? judged->plan->vocab : 0;
	vn_status st = is_long(x->k, judged) || x->vocab ? judge_as(x, *policy, WHOLE, NULL, &kept, err) : VN_OK;

	if (!st && is_ggml_model(judged) && policy->storage == VN_F32 && !policy->products) {
		const bool cut = kept.result.checkpoints.n > 0;
		st = find_ggml(x, cut ? &kept.opened : judged, cut ? &kept.result.checkpoints : all, &kept, policy, err);
	}
	if (!st && x->heads && policy->storage == VN_F32 && !policy->products)
		st = find_storage(x, kept.result.checkpoints.n > 0 ? &kept.result.checkpoints : all, &kept, policy, err);
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
