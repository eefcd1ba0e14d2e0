/* explain.c: see explain.h: from origins to answers. */
#include "compare/explain/explain.h"
#include "compare/explain/across_steps.h"
#include "compare/explain/error_shape.h"
#include "compare/explain/explain_point.h"
#include "compare/explain/sentences.h"
#include "compare/rearrange/rearrange.h"
#include "compare/replay/local.h"
#include "compare/replay/overflow.h"
#include "compare/replayed/replayed.h"
#include "compare/replayed/variants.h"
#include "compare/trial/findings.h"
#include "compare/trial/score.h"

#include "libref/base/alloc.h"
#include "libref/base/progress.h"
#include "libref/plan/fault.h"

#include <stdlib.h>
#include <string.h>

/* Finds which mistake reproduces a wrong result of a model of which vernier
 * knows no plan, by a replay file.
 *
 * The file has what the model itself makes of the candidate's inputs with one mistake (a row of
 * replayed/variants.def). Each is a trial, as are other arrangements of the right result
 * (rearrange/). A trial explains the result by the rules of explain.h.
 *
 * Reads   opened.ref, opened.cand, opened.replayed, result.judged, localised.origins
 * Fills   the caller's vn_all_findings
 */

enum { REPLAYED_ORIGINS = 200 }; /* origins that are examined */
enum { MOST_READ = 1 << 23 };    /* numbers of one result: of a larger one the first rows */

/* ---- the tensors of an origin ---------------------------------------------------------------- */

/* Entries of recordings that are read for one origin. */
typedef struct read_entries {
	vn_recording *from[3 + 2 * VN_ALTERNATIVES_MOST];
	int           entry[3 + 2 * VN_ALTERNATIVES_MOST], n;
	vn_shape      shape; /* of each, as it is read */
} read_entries;

/* The shape without axes of one element, and with as many of its first rows as are read. */
static vn_shape shape_of(const vn_shape *s, bool *sampled)
{
	vn_shape x = { .rank = 0 };

	for (int i = 0; i < s->rank; i++)
		if (s->dim[i] != 1)
			x.dim[x.rank++] = s->dim[i];
	if (x.rank == 0)
		x = (vn_shape) { .rank = 1, .dim = { 1 } };
	const int64_t n = vn_shape_count(&x);
	*sampled = n > MOST_READ && x.dim[0] > 1;
	if (*sampled)
		x.dim[0] = MOST_READ / (n / x.dim[0]) > 0 ? MOST_READ / (n / x.dim[0]) : 1;
	return x;
}

static bool read_entry(const vn_case *c, read_entries *list, vn_recording *r, int entry, vn_tensor *t)
{
	if (!vn_case_made(c, vn_entry_tensor(r, entry, t, vn_case_error(c))))
		return false;
	list->from[list->n] = r;
	list->entry[list->n++] = entry;
	t->shape = list->shape;
	return true;
}

static void release_entries(const read_entries *list)
{
	for (int i = 0; i < list->n; i++)
		vn_recording_release(list->from[i], list->entry[i]);
}

/* ---- the trials ------------------------------------------------------------------------------ */

static void try_alternatives(vn_case *t, const vn_judged_result *r, read_entries *list)
{
	vn_recording *file = t->opened->replayed->recording;

	for (int i = 0; i < r->n_alternatives; i++) {
		const vn_tried_mistake *x = &r->alternative[i];
		vn_trial                h = VN_TRIAL(VARIANT, -1, .kind = VN_BY_REPLAY);
		vn_tensor               fine, own;
		h.applied.variant.row = vn_variant_find(x->word);
		h.applied.variant.is = x->is;
		h.applied.variant.due = x->due;
		if (h.applied.variant.row < 0)
			continue; /* of a later recorder */
		if (!read_entry(t, list, file, x->numbers, &fine))
			return;
		own = fine;
		if (x->floor >= 0 && !read_entry(t, list, file, x->floor, &own))
			return;
		vn_try_numbers(t, &own, &fine, NULL, &h);
	}
}

/* Do the results that read this one, as the reference does, follow from its recorded numbers? */
static vn_consumed consumed_of(const vn_case *t, int result)
{
	const vn_replayed_file *f = t->opened->replayed;
	const vn_run_plan      *p = vn_recording_run_plan(t->opened->ref);
	const vn_judged_result *r = &f->result[result];
	const int               v = p ? vn_run_plan_value(p, r->step, r->reference) : -1;

	for (int i = 0; v >= 0 && i < f->n; i++) {
		const int node = vn_run_plan_maker(p, f->result[i].step, f->result[i].reference);
		if (node < 0 || t->result->judged->of[i].wrong)
			continue;
		for (int k = 0; k < p->node[node].n_in; k++)
			if (p->in[p->node[node].first_in + k] == v)
				return VN_CONSUMED_AS_RECORDED;
	}
	return VN_CONSUMED_UNKNOWN;
}

static void try_all(vn_case *t, const vn_judged_result *r, read_entries *list)
{
	vn_findings *x = t->x;

	vn_score_numbers(t, &t->own, &t->fine, &x->unmodified);
	try_alternatives(t, r, list);
	vn_case_conclude(t);
	if (x->n_fit)
		return;
	x->fitted = true;
	vn_rearrange(t);
	if (!vn_case_answered(t))
		vn_rearrange_rows(t);
}

static const char *why_not(const vn_judged_result *r)
{
	return r->kind != VN_JUDGED_NUMBERS ? "its numbers are ids" : *r->ids ? "its numbers stand beside ids" : NULL;
}

static void explain_result(vn_case *t, int result)
{
	const vn_opened        *o = t->opened;
	const vn_judged_result *r = &o->replayed->result[result];
	vn_site                 site = { .axes = "", .first = 0 };
	vn_recording           *file = o->replayed->recording;
	read_entries            list = { .n = 0 };
	const char             *why = why_not(r);

	if (why) {
		snprintf(t->x->why_not, sizeof t->x->why_not, "%s", why);
		return;
	}
	list.shape = shape_of(&vn_recording_entry(o->cand, r->cand)->shape, &site.sampled);
	t->site = &site;
	t->consumed = consumed_of(t, result);
	t->format = vn_replayed_format(o, r);
	t->allow = vn_floors_allowed(r->op, t->format);
	t->x->n_tried = r->n_tried;
	if (read_entry(t, &list, o->cand, r->cand, &site.cand) && read_entry(t, &list, file, r->expected, &t->fine)) {
		t->own = t->fine;
		if (r->floor < 0 || read_entry(t, &list, file, r->floor, &t->own))
			try_all(t, r, &list);
	}
	vn_case_conclude(t);
	release_entries(&list);
	t->site = NULL;
}

static vn_status explain_replayed(const vn_opened *o, const vn_result *r, vn_all_findings *all, vn_error *err)
{
	vn_failure  failed = { .st = VN_OK };
	vn_case     t = { .failed = &failed, .opened = o, .result = r };
	vn_progress bar = { 0 };

	if (!r->replayed || !r->localised.n_origins)
		return VN_OK;
	all->of = vn_alloc_zero((size_t)r->localised.n_origins, sizeof *all->of);
	vn_progress_start(&bar, "explaining origin", r->localised.n_origins);
	for (int i = 0; !failed.st && i < r->localised.n_origins; i++) {
		const int    point = r->localised.origins[i];
		const int    result = vn_replayed_result_of(o, &r->checkpoints.of[point]);
		vn_findings *x = &all->of[all->n];
		if (result < 0)
			continue;
		if (all->n == REPLAYED_ORIGINS) {
			all->left_out = r->localised.n_origins - i;
			break;
		}
		*x = (vn_findings) { .checkpoint = point,
			                 .same_answer_as = -1,
			                 .by = vn_alloc_zero(VN_EXPLAIN_KEPT, sizeof *x->by) };
		all->n++;
		t.x = x;
		explain_result(&t, result);
		vn_progress_at(&bar, i + 1);
	}
	vn_progress_stop(&bar);
	vn_explain_put_sentences(o, r, all);
	return vn_failure_of(&failed, err);
}

/* ---- which of several answers that the numbers cannot tell apart comes first ----------------- */

/* The place of h among the aliases of x; -1: it is none. */
static int alias_of(const vn_findings *x, const vn_trial *h)
{
	for (int i = 0; i < x->n_alias; i++)
		if (vn_trial_same(&x->by[i], h))
			return i;
	return -1;
}

/* The number of origins that the answer explains. */
static int count_explained(const vn_all_findings *x, const vn_trial *h)
{
	int n = 0;
	for (int i = 0; i < x->n; i++)
		n += alias_of(&x->of[i], h) >= 0;
	return n;
}

/* The number of places where the mistake could have been made. An answer that fits few places says
 * more. */
static int count_places(const vn_opened *o, const vn_trial *h)
{
	char      id[VN_ID];
	const int f = *vn_trial_id(h, id) ? vn_fault_find(id) : -1;
	return f < 0 ? 0 : vn_fault_count(f, vn_model_plan(o->model), NULL);
}

/* Keys and values of another layer, while only one of the two caches is wrong: then it is keys
 * alone or values alone. */
static bool of_one_alone(const vn_opened *o, const vn_result *r, const vn_findings *x, const vn_trial *h)
{
	const vn_checkpoint *beside;

	return vn_trial_mistake(h) == VN_MISTAKE_C9 && vn_counterpart(o, r, x, &beside) && beside && beside->replayed &&
	       !beside->origin;
}

static bool is_rotation(const vn_opened *o, const vn_result *r, const vn_findings *x)
{
	const vn_plan *p = vn_model_plan(o->model);
	const int      v = vn_plan_find(p, r->checkpoints.of[x->checkpoint].name);

	return v >= 0 && p->node[p->value[vn_plan_root(p, v)].node].op == VN_OP_ROPE;
}

/* Does it explain every rotation that anything explains? An engine rotates queries and keys alike;
 * one of them may not show a column. */
static bool explains_rotations(const vn_opened *o, const vn_result *r, const vn_all_findings *all, const vn_findings *x,
                               const vn_trial *h)
{
	int n = 0;

	if (!is_rotation(o, r, x))
		return false;
	for (int i = 0; i < all->n; i++)
		n += all->of[i].n_fit > 0 && is_rotation(o, r, &all->of[i]);
	return count_explained(all, h) == n;
}

/* What decides the order of answers. */
typedef struct answer_rank {
	bool named; /* not an arrangement, nor contradicted by another checkpoint */
	bool beside, against;
	bool everywhere; /* of a rotation */
	int  explained, places;
} answer_rank;

static answer_rank rank_of(const vn_opened *o, const vn_result *r, const vn_all_findings *all, const vn_findings *x,
                           const vn_trial *h)
{
	char id[VN_ID];

	return (answer_rank) { .named = *vn_trial_id(h, id) && !of_one_alone(o, r, x, h),
		                   .beside = h->beside,
		                   .against = h->speaks_against != VN_NOTHING_AGAINST,
		                   .everywhere = explains_rotations(o, r, all, x, h),
		                   .explained = count_explained(all, h),
		                   .places = count_places(o, h) };
}

/* Answers that no step contradicts come first; then one that explains all rotations; then faults of
 * the catalogue, before what was fitted beside them; then named answers; then answers that explain
 * more; then answers that fit fewer places. */
static bool comes_before(answer_rank a, answer_rank b)
{
	if (a.against != b.against)
		return b.against;
	if (a.everywhere != b.everywhere)
		return a.everywhere;
	if (a.beside != b.beside)
		return b.beside;
	if (a.named != b.named)
		return a.named;
	if (a.explained != b.explained)
		return a.explained > b.explained;
	return a.places < b.places;
}

static void order_aliases(const vn_opened *o, const vn_result *r, const vn_all_findings *all, vn_findings *x)
{
	for (int i = 1; i < x->n_alias; i++) {
		const vn_trial    h = x->by[i];
		const answer_rank rank = rank_of(o, r, all, x, &h);
		int               at = i;
		for (; at > 0 && comes_before(rank, rank_of(o, r, all, x, &x->by[at - 1])); at--)
			x->by[at] = x->by[at - 1];
		x->by[at] = h;
	}
}

/* The findings of the origin that this operation makes, in the step of x; NULL: it is none. */
static const vn_findings *origin_at(const vn_opened *o, const vn_result *r, const vn_all_findings *all,
                                    const vn_findings *x, int node)
{
	const vn_plan *p = vn_model_plan(o->model);

	for (int i = 0; i < all->n; i++) {
		const vn_checkpoint *c = &r->checkpoints.of[all->of[i].checkpoint];
		const int            v = c->step == r->checkpoints.of[x->checkpoint].step ? vn_plan_find(p, c->name) : -1;
		if (v >= 0 && &all->of[i] != x && p->value[vn_plan_root(p, v)].node == node)
			return &all->of[i];
	}
	return NULL;
}

/* A mistake that was made at another origin, and is the answer there, explains both. Answers here
 * that are none there drop out: they would need a second mistake. */
static void drop_needing_another(const vn_opened *o, const vn_result *r, const vn_all_findings *all, vn_findings *x)
{
	const vn_findings *there = NULL;
	int                kept = 0;

	for (int i = 0; !there && i < x->n_alias; i++) {
		const vn_findings *y = origin_at(o, r, all, x, x->by[i].node);
		there = y && alias_of(y, &x->by[i]) == 0 ? y : NULL;
	}
	if (!there)
		return;
	for (int i = 0; i < x->n; i++)
		if (i >= x->n_alias || alias_of(there, &x->by[i]) >= 0)
			x->by[kept++] = x->by[i];
	x->n_alias -= x->n - kept;
	x->n_fit -= x->n - kept;
	x->n = kept;
}

/* ---- origins --------------------------------------------------------------------------------- */

/* After the first IN_FULL origins, slow strategies are skipped, and an origin at the same point as
 * an explained one first gets that one's answers. At most AT_ALL are examined. After IN_VAIN
 * origins without an answer the rest is left out: the same reason is likely to apply. */
enum { IN_FULL = 6, AT_ALL = 400, IN_VAIN = 24 };

/* An answer that fits an origin of the same point in another layer; it is likely to fit here
 * too. */
static int twin_of(const vn_result *r, const vn_all_findings *x, int point)
{
	const char *name = r->checkpoints.of[point].name;

	for (int i = 0; vn_name_layer(name) >= 0 && i < x->n; i++) {
		const char *other = r->checkpoints.of[x->of[i].checkpoint].name;
		if (x->of[i].n_fit && x->of[i].same_answer_as < 0 && vn_name_layer(other) >= 0 &&
		    strcmp(vn_name_in_layer(other), vn_name_in_layer(name)) == 0)
			return i;
	}
	return -1;
}

static bool needs_none(const vn_checkpoint *p)
{
	return vn_local_is_order(p) || vn_overflow_is_all(p);
}

static void explain_origin(vn_case *t, vn_all_findings *all, int point)
{
	vn_findings *x = &all->of[all->n];
	const int    like = all->n >= IN_FULL ? twin_of(t->result, all, point) : -1;

	*x = (vn_findings) { .checkpoint = point,
		                 .same_answer_as = like,
		                 .by = vn_alloc_zero(VN_EXPLAIN_KEPT, sizeof *x->by) };
	t->x = x;
	t->brief = all->n >= IN_FULL;
	if (needs_none(&t->result->checkpoints.of[point])) {
		all->n++;
		return;
	}
	vn_explain_point(t, like >= 0 ? &all->of[like] : NULL);
	if (like >= 0 && !x->n_fit) {
		x->same_answer_as = -1;
		x->lent = false;
		x->n = x->n_tried = x->n_fit = x->n_alias = 0;
		x->fitted = false;
		vn_explain_point(t, NULL);
	}
	all->n++;
}

/* Another origin of the same point, in another layer, with this alias; -1. */
static int other_twin(const vn_result *r, const vn_all_findings *all, int of, const vn_trial *h)
{
	const char *name = vn_name_in_layer(r->checkpoints.of[all->of[of].checkpoint].name);

	for (int i = 0; i < all->n; i++)
		if (i != of && alias_of(&all->of[i], h) >= 0 &&
		    strcmp(vn_name_in_layer(r->checkpoints.of[all->of[i].checkpoint].name), name) == 0)
			return i;
	return -1;
}

/* An origin that nothing explains gets the answers of its point in other layers, whose error may be
 * larger. */
static void ask_twins(vn_case *t, vn_all_findings *all)
{
	for (int i = 0; !t->failed->st && i < all->n; i++) {
		vn_findings *x = &all->of[i], alone = *x;
		const int    like = x->n_fit || *x->why_not || needs_none(&t->result->checkpoints.of[x->checkpoint])
		                        ? -1
		                        : twin_of(t->result, all, x->checkpoint);
		if (like < 0)
			continue;
		x->by = vn_alloc_zero(VN_EXPLAIN_KEPT, sizeof *x->by);
		x->n = 0;
		x->same_answer_as = like;
		t->x = x;
		vn_explain_point(t, &all->of[like]);
		free(x->n_fit ? alone.by : x->by);
		if (!x->n_fit)
			*x = alone;
		x->n_tried = alone.n_tried;
	}
}

/* ---- one mistake of all rotations ------------------------------------------------------------ */

/* Of the answers of all rotations, the one that explains most of them; NULL: none has an answer. */
static const vn_trial *most_common(const vn_case *t, const vn_all_findings *all)
{
	const vn_trial *best = NULL;
	int             most = 0, n;

	for (int i = 0; i < all->n; i++)
		for (int k = 0; is_rotation(t->opened, t->result, &all->of[i]) && k < all->of[i].n_alias; k++)
			if ((n = count_explained(all, &all->of[i].by[k])) > most) {
				most = n;
				best = &all->of[i].by[k];
			}
	return best;
}

/* An answer of one rotation that leaves others unexplained gives way to one that explains more of
 * them, if that explains this one too: an engine rotates queries and keys of all layers alike. */
static void agree_on_rotations(vn_case *t, vn_all_findings *all)
{
	const vn_trial *common = most_common(t, all);
	const vn_trial  best = common ? *common : (vn_trial) { .node = -1 };
	const int       n = common ? count_explained(all, common) : 0;

	for (int i = 0; common && !t->failed->st && i < all->n; i++) {
		vn_findings *x = &all->of[i], alone = *x;
		const int    twin = is_rotation(t->opened, t->result, x) && x->n_fit && alias_of(x, &best) < 0 &&
                                 count_explained(all, &x->by[0]) < n
		                        ? other_twin(t->result, all, i, &best)
		                        : -1;
		if (twin < 0)
			continue;
		vn_trial    its = all->of[twin].by[alias_of(&all->of[twin], &best)];
		vn_findings like = { .by = &its, .n = 1, .n_fit = 1, .n_alias = 1, .fitted = vn_trial_is_fitted(&its) };
		x->by = vn_alloc_zero(VN_EXPLAIN_KEPT, sizeof *x->by);
		x->n = x->n_fit = x->n_alias = 0;
		t->x = x;
		vn_explain_point(t, &like);
		free(x->n_fit ? alone.by : x->by);
		if (!x->n_fit)
			*x = alone;
		x->n_tried = alone.n_tried;
	}
}

/* ---- two mistakes of a rotation -------------------------------------------------------------- */

/* Of more than a thousand pairs, one may fit by chance. An engine rotates queries and keys of all
 * layers alike: a pair that leaves another rotation unexplained is dropped. */
static void drop_lone_pairs(const vn_opened *o, const vn_result *r, vn_all_findings *all)
{
	bool unexplained = false;

	for (int i = 0; i < all->n; i++)
		unexplained = unexplained || (!all->of[i].n_fit && !*all->of[i].why_not && is_rotation(o, r, &all->of[i]));
	for (int i = 0; i < all->n && unexplained; i++) {
		vn_findings *x = &all->of[i];
		int          kept = 0, fit = 0;
		if (!is_rotation(o, r, x))
			continue;
		for (int k = 0; k < x->n; k++)
			if (k >= x->n_fit || !vn_trial_is_pair(&x->by[k])) {
				fit += k < x->n_fit;
				x->by[kept++] = x->by[k];
			}
		x->n = kept;
		x->n_fit = fit;
		x->n_alias = x->n_alias < fit ? x->n_alias : fit;
	}
}

/* ---- what is inside another operation -------------------------------------------------------- */

/* The checkpoint of the operation that contains a value which nothing reads: gate_act is a
 * factor inside mlp_act; scores and probabilities belong to attention. -1: none. */
static int outer_of(const vn_opened *in, const vn_result *r, int point)
{
	const vn_checkpoint *me = &r->checkpoints.of[point];
	const vn_plan       *p = vn_model_plan(in->model);
	const int            v = vn_plan_find(p, me->name);
	const vn_node       *n = v < 0 ? NULL : &p->node[p->value[vn_plan_root(p, v)].node];

	for (int i = 0; n && (n->op == VN_OP_ACT || n->op == VN_OP_ATTENTION) && i < r->checkpoints.n; i++) {
		const vn_checkpoint *q = &r->checkpoints.of[i];
		const int            w = q->step == me->step && q->origin ? vn_plan_find(p, q->name) : -1;
		const vn_node       *o = w < 0 ? NULL : &p->node[p->value[vn_plan_root(p, w)].node];
		if (o && o == n && n->op == VN_OP_ATTENTION && i != point && vn_plan_root(p, w) == n->out[VN_ATTN_CONTEXT])
			return i;
		if (o && n->op == VN_OP_ACT && o->op == VN_OP_GATED && o->layer == n->layer &&
		    vn_plan_root(p, o->in[0]) == vn_plan_root(p, n->in[0]))
			return i;
	}
	return -1;
}

static bool is_inside_attention(const vn_opened *o, const vn_result *r, const vn_findings *x)
{
	const vn_plan *p = vn_model_plan(o->model);
	const int      v = vn_plan_find(p, r->checkpoints.of[x->checkpoint].name);

	return v >= 0 && (p->value[v].point == VN_POINT_ATTN_SCORES || p->value[v].point == VN_POINT_ATTN_PROBS);
}

static void take_answer(vn_findings *x, const vn_findings *of)
{
	memcpy(x->by, of->by, VN_EXPLAIN_KEPT * sizeof *x->by);
	x->n = of->n;
	x->n_fit = of->n_fit;
	x->n_alias = of->n_alias;
	x->margin = of->margin;
	x->fitted = of->fitted;
	x->unmodified = of->unmodified;
	x->same_answer_as = -1;
}

/* One operation has one mistake: the answer of the outer checkpoint is also that of the inner
 * one. */
static void answer_inside(const vn_opened *in, const vn_result *r, const vn_all_findings *all, vn_findings *x)
{
	const int outer = outer_of(in, r, x->checkpoint);

	for (int i = 0; outer >= 0 && i < all->n; i++) {
		const vn_findings *o = &all->of[i];
		if (o->checkpoint != outer || !o->n_fit || (x->n_fit && is_inside_attention(in, r, x)))
			continue; /* scores and probabilities show more than the context made from them */
		take_answer(x, o);
	}
}

/* Does it change which keys the softmax sums over, and so the probabilities? */
static bool is_of_keys(const vn_trial *h)
{
	switch (vn_trial_mistake(h)) {
	case VN_MISTAKE_A5:
	case VN_MISTAKE_A14:
	case VN_MISTAKE_A22:
	case VN_MISTAKE_A23: return true;
	default: return false;
	}
}

/* A context whose error is less than that of the probabilities it is made from, and whose keys,
 * as its answer has them, are not theirs: it has their answer. One query hardly tells keys of
 * padding from keys that are 0. */
static void answer_outside(const vn_opened *in, const vn_result *r, const vn_all_findings *all, vn_findings *x)
{
	for (int i = 0; x->n_fit && is_of_keys(&x->by[0]) && i < all->n; i++) {
		const vn_findings *o = &all->of[i];
		bool               alike = false;
		if (!o->n_fit || o->by[0].recorder_fault || outer_of(in, r, o->checkpoint) != x->checkpoint ||
		    !(o->unmodified.limit_fraction > x->unmodified.limit_fraction))
			continue;
		for (int k = 0; k < o->n_alias; k++)
			alike = alike || vn_trial_same_mechanism(&o->by[k], &x->by[0]);
		if (!alike)
			take_answer(x, o);
	}
}

vn_status vn_explain(const vn_opened *o, const vn_result *r, vn_all_findings **why, vn_error *err)
{
	vn_all_findings *x = *why = vn_alloc_zero(1, sizeof *x);
	vn_failure       failed = { .st = VN_OK };
	vn_case          t = { .failed = &failed, .opened = o, .result = r };
	vn_progress      bar = { 0 };
	const int        n = r->localised.n_origins + r->localised.n_captured;

	if (o->replayed)
		return explain_replayed(o, r, x, err);
	if (!o->model || !r->replayed || !r->localised.n_origins)
		return VN_OK;
	x->of = vn_alloc_zero((size_t)n, sizeof *x->of);
	const vn_status st = vn_recompute_create(o, &r->checkpoints, &t.recompute, err);
	if (st)
		return st;
	t.site = vn_recompute_site(t.recompute);
	vn_progress_start(&bar, "explaining origin", n);
	int nothing = 0; /* origins that nothing fits, in a row */
	for (int i = 0; !failed.st && i < n; i++) {
		if (x->n == AT_ALL || nothing == IN_VAIN) {
			x->left_out = i < r->localised.n_origins ? r->localised.n_origins - i : 0;
			break;
		}
		if (!r->checkpoints.of[r->localised.origins[i]].replayed)
			continue;
		explain_origin(&t, x, r->localised.origins[i]);
		vn_progress_at(&bar, i + 1);
		nothing = x->n && (x->of[x->n - 1].n_fit || needs_none(&r->checkpoints.of[r->localised.origins[i]]))
		              ? 0
		              : nothing + 1;
	}
	ask_twins(&t, x);
	agree_on_rotations(&t, x);
	vn_explain_across_steps(&t, x);
	vn_progress_stop(&bar);
	vn_recompute_destroy(t.recompute);
	drop_lone_pairs(o, r, x);
	for (int i = 0; i < x->n; i++)
		order_aliases(o, r, x, &x->of[i]);
	for (int i = 0; i < x->n; i++)
		drop_needing_another(o, r, x, &x->of[i]);
	for (int i = 0; i < x->n; i++) {
		answer_outside(o, r, x, &x->of[i]);
		answer_inside(o, r, x, &x->of[i]);
		if (x->of[i].n_fit && !vn_explain_says_where(&x->of[i])) /* found after its error was described */
			vn_lines_free(&x->of[i].error_shape);
	}
	vn_explain_put_sentences(o, r, x);
	return vn_failure_of(&failed, err);
}

void vn_findings_free(vn_all_findings *why)
{
	for (int i = 0; why && i < why->n; i++) {
		free(why->of[i].by);
		vn_lines_free(&why->of[i].error_shape);
	}
	if (why)
		free(why->of);
	free(why);
}

const vn_explainer vn_catalogue_explainer = { vn_explain, vn_findings_free };
