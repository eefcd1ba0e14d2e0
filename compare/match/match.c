/* match.c: pairs the tensors of two recordings by name. Nothing is broadcast, cut or reshaped to
 * make them fit. */
#include "compare/comparison/checkpoint.h"
#include "compare/match/match.h"
#include "compare/match/names.h"

#include "capture/view/batched.h"
#include "capture/view/dims.h"
#include "capture/recording/sequence.h"
#include "libref/plan/point.h"
#include "libref/base/alloc.h"
#include "libref/base/glob.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool vn_match_selects(const vn_opened *o, const char *name)
{
	const vn_compare_options *options = o->request.options;
	for (int i = 0; i < options->n_points; i++)
		if (vn_glob_match(options->points[i], name))
			return true;
	return options->n_points == 0;
}

/* Counts a compared checkpoint of this name for every pattern that selects it. */
static void count_hits(const vn_opened *o, const char *name, int *hits)
{
	for (int i = 0; i < o->request.options->n_points; i++)
		hits[i] += vn_glob_match(o->request.options->points[i], name);
}

/* Does the entry hold logits? */
static bool is_scores(const vn_entry *e)
{
	const vn_point_info *p = vn_entry_point(e);
	return strcmp(e->basis, "vocab") == 0 || (!*e->basis && p && strcmp(p->basis, "vocab") == 0);
}

static void set_unfit(vn_checkpoint *p, vn_checkpoint_status status)
{
	p->status = status;
	p->fails = true;
}

/* Whether an entry's axes are valid: one word for each axis, no word twice.
 * Otherwise reports it and returns false. */
static bool axes_hold(vn_checkpoint *p, const vn_entry *e, const char *who)
{
	vn_dims     d;
	const char *why;
	char        shape[VN_SHAPE_TEXT];

	if (!*e->axes || (vn_dims_parse(e->axes, &d, &why) && d.rank == e->shape.rank))
		return true;
	if (vn_dims_parse(e->axes, &d, &why))
		why = "the number of words is not the number of axes";
	set_unfit(p, VN_MISSHAPEN);
	vn_checkpoint_say(p, "axes '%s' of %s in the %s: %s", e->axes, vn_shape_text(&e->shape, shape), who, why);
	return false;
}

/* Every checkpoint of a plan holds real numbers, except ids of experts: those may be either. */
static bool is_whole(vn_checkpoint *p, const vn_entry *e, const char *who)
{
	const vn_point_info *point = e->dtype == VN_I32 ? vn_entry_point(e) : NULL;
	if (!point || strcmp(point->basis, "expert_id") == 0)
		return false;
	set_unfit(p, VN_MISSHAPEN);
	vn_checkpoint_say(p, "int32 in the %s: %s holds real numbers", who, point->name);
	return true;
}

/* Finds everything that prevents two tensors of one name from being measured. */
static void check_fit(const vn_opened *o, vn_checkpoint *p)
{
	const vn_entry *r = vn_recording_entry(o->ref, p->ref), *d = vn_recording_entry(o->cand, p->cand);
	const vn_step  *rs = vn_recording_step(o->ref, r->step), *ds = vn_recording_step(o->cand, d->step);
	char            a[VN_SHAPE_TEXT], b[VN_SHAPE_TEXT];

	if (rs && ds && (rs->position != ds->position || rs->tokens != ds->tokens)) {
		set_unfit(p, VN_MISSHAPEN);
		vn_checkpoint_say(p,
		                  "step %d has %" PRId64 " token%s from position %" PRId64 " in the reference, %" PRId64
		                  " from position %" PRId64 " in the candidate",
		                  r->step, rs->tokens, rs->tokens == 1 ? "" : "s", rs->position, ds->tokens, ds->position);
	} else if (rs && ds && (rs->first_row != ds->first_row || rs->rows != ds->rows)) {
		set_unfit(p, VN_MISSHAPEN);
		vn_checkpoint_say(p,
		                  "kept rows: %" PRId64 " from row %" PRId64 " in the reference, %" PRId64 " from row %" PRId64
		                  " in the candidate",
		                  rs->rows, rs->first_row, ds->rows, ds->first_row);
	} else if (r->rows_off || d->rows_off) {
		const vn_entry *e = d->rows_off ? d : r;
		set_unfit(p, VN_MISSHAPEN);
		vn_checkpoint_say(p, "axes '%s' of %s in the %s, and rows of its step: %" PRId64, e->axes,
		                  vn_shape_text(&e->shape, a), d->rows_off ? "candidate" : "reference",
		                  (d->rows_off ? ds : rs)->rows);
	} else if (is_whole(p, r, "reference") || is_whole(p, d, "candidate")) {
		; /* already reported */
	} else if (!vn_shape_equal(&r->shape, &d->shape)) {
		set_unfit(p, VN_MISSHAPEN);
		vn_checkpoint_say(p, "shape %s in the reference, %s in the candidate", vn_shape_text(&r->shape, a),
		                  vn_shape_text(&d->shape, b));
	} else if (!axes_hold(p, r, "reference") || !axes_hold(p, d, "candidate")) {
		; /* already reported */
	} else if (*r->axes && *d->axes && strcmp(r->axes, d->axes) != 0) {
		set_unfit(p, VN_MISSHAPEN);
		vn_checkpoint_say(p, "axes '%s' in the reference, '%s' in the candidate", r->axes, d->axes);
	} else if (*r->basis && *d->basis && strcmp(r->basis, d->basis) != 0) {
		set_unfit(p, VN_MISSHAPEN);
		vn_checkpoint_say(p, "basis '%s' in the reference, '%s' in the candidate", r->basis, d->basis);
	} else if (o->request.options->bitwise && r->dtype != d->dtype) {
		set_unfit(p, VN_MISSHAPEN);
		vn_checkpoint_say(p, "%s in the reference, %s in the candidate: the bits cannot be equal",
		                  vn_dtype_name(r->dtype), vn_dtype_name(d->dtype));
	} else if (vn_shape_count(&r->shape) == 0) {
		set_unfit(p, VN_EMPTY);
		vn_checkpoint_say(p, "no elements: %s", vn_shape_text(&r->shape, a));
	}
}

vn_checkpoint vn_match_point(const vn_entry *e, int ref, int cand)
{
	return (vn_checkpoint) {
		.name = e->name,
		.step = e->step,
		.order = e->order,
		.layer = e->layer,
		.ref = ref,
		.cand = cand,
		.scores = is_scores(e),
		.pooled_logits = -1,
		.pooled_small = -1,
		.channels = -1,
		.m = vn_measured_none(),
		.worst = -1,
		.was = (double)NAN,
	};
}

/* The entry that stores the numbers of entry i. */
static int find_root(const vn_recording *r, int i)
{
	const int other = vn_recording_entry(r, i)->same_as;
	return other >= 0 ? other : i;
}

/* status: VN_MISSING or VN_EXTRA. */
static void mark_alone(const vn_opened *o, vn_checkpoint *p, vn_checkpoint_status status)
{
	const bool   extra = status == VN_EXTRA;
	vn_limit_set set;

	vn_limits_for(o->request.limits, p->name, &set);
	p->status = status;
	/* what a replay file does not pair is part of a span */
	const bool spanned = o->replayed && !vn_replayed_is_result(p->name);
	p->fails = !(o->request.options->allow & (extra ? VN_ALLOW_EXTRA : VN_ALLOW_MISSING)) &&
	           !set.permission[extra ? VN_PERMIT_EXTRA : VN_PERMIT_MISSING] && !spanned;
	vn_checkpoint_say(
		p, spanned ? "has no counterpart in the %s: computed together with what reads it" : "not in the %s%s",
		extra ? "reference" : "candidate", p->fails ? "" : " (allowed)");
}

/* Tensors that both sides hold under several names are compared once for each pair. */
typedef struct matching {
	int  *partner;     /* (entries of ref) partner in the candidate, through aliases; -1 */
	bool *used;        /* (entries of cand) is a partner, or stores a partner's numbers */
	int  *home;        /* (entries of cand) partner in the reference, through aliases; -1 */
	int  *head, *next; /* (ref), (cand): list of candidate entries with this home and another name; -1 */
	int  *hits;        /* (patterns) */
} matching;

static void pair_up(const vn_opened *o, matching *m)
{
	const int n = vn_recording_count(o->ref), k = vn_recording_count(o->cand);
	for (int i = 0; i < n; i++) {
		const vn_entry *e = vn_recording_entry(o->ref, i);
		m->head[i] = -1;
		m->partner[i] = o->replayed ? o->replayed->partner[i] : vn_recording_find(o->cand, e->step, e->name);
		/* A candidate without a plan cannot know that two names here mean one tensor, so the
		 * reference's aliases decide. */
		if (m->partner[i] < 0 && e->same_as >= 0 && !vn_recording_plan(o->cand))
			m->partner[i] = m->partner[e->same_as];
		if (m->partner[i] >= 0)
			m->used[m->partner[i]] = m->used[find_root(o->cand, m->partner[i])] = true;
	}
	/* A candidate without a plan may also hold a tensor under its second name only. */
	for (int i = 0; i < n && !vn_recording_plan(o->cand); i++) {
		const int first = vn_recording_entry(o->ref, i)->same_as;
		if (first >= 0 && m->partner[first] < 0)
			m->partner[first] = m->partner[i];
	}
	for (int i = k - 1; i >= 0; i--) {
		const vn_entry *e = vn_recording_entry(o->cand, i);
		int             home = o->replayed ? o->replayed->home[i] : vn_recording_find(o->ref, e->step, e->name);
		/* Conversely, a name that the reference lacks may be a second name of a tensor that it has
		 * under the first. */
		if (home < 0 && e->same_as >= 0)
			home = vn_recording_find(o->ref, e->step, vn_recording_entry(o->cand, e->same_as)->name);
		if (home < 0 && e->again)
			home = vn_recording_find(o->ref, e->step, e->again);
		m->home[i] = home;
		if (home < 0 || strcmp(vn_recording_entry(o->ref, home)->name, e->name) == 0)
			continue;
		m->next[i] = m->head[home];
		m->head[home] = i;
	}
}

static void add_pair(const vn_opened *o, vn_checkpoints *all, const matching *m, const vn_entry *e, int ref, int cand)
{
	vn_checkpoint *p = &all->of[all->n++];

	*p = vn_match_point(e, ref, cand);
	count_hits(o, e->name, m->hits);
	if (cand < 0)
		mark_alone(o, p, VN_MISSING);
	else if (ref < 0)
		mark_alone(o, p, VN_EXTRA);
	else
		check_fit(o, p);
}

/* Matches an entry of the reference, and the candidate's second names of it. */
static void match_entry(const vn_opened *o, vn_checkpoints *all, vn_lines *notes, const matching *m, int i)
{
	const vn_entry *e = vn_recording_entry(o->ref, i);
	const bool      chosen = vn_match_selects(o, e->name);
	bool            again = false;

	/* A tensor with the same second name on both sides is measured under the first name. If the
	 * candidate lacks both names, the tensor is missing under the first name. */
	if (chosen && e->same_as >= 0 && vn_match_selects(o, vn_recording_entry(o->ref, e->same_as)->name)) {
		const int own = m->partner[i], first = m->partner[e->same_as];
		again = own < 0 || first < 0 ? own == first : find_root(o->cand, first) == find_root(o->cand, own);
	}
	if (chosen && !again && m->partner[i] < 0 && vn_batched_lacks(o->cand, e)) {
		vn_lines_once(notes, "", "tensors",
		              "candidate: states of Gated DeltaNet are those of the last of its prompts: not compared");
		again = true;
	}
	if (again)
		count_hits(o, e->name, m->hits);
	else if (chosen)
		add_pair(o, all, m, e, i, m->partner[i]);

	for (int k = m->head[i]; k >= 0; k = m->next[k]) {
		const vn_entry *d = vn_recording_entry(o->cand, k);
		if (!vn_match_selects(o, d->name))
			continue;
		if (chosen && m->partner[i] >= 0 && find_root(o->cand, m->partner[i]) == find_root(o->cand, k))
			count_hits(o, d->name, m->hits);
		else
			add_pair(o, all, m, d, i, k);
	}
}

static const char *entry_name(const void *recording, int i)
{
	return vn_recording_entry(recording, i)->name;
}

/* Has it a comma outside braces? */
static bool has_list(const char *glob)
{
	int depth = 0;

	for (; *glob && (*glob != ',' || depth > 0); glob++)
		depth += *glob == '{' ? 1 : *glob == '}' ? -1 : 0;
	return *glob;
}

static vn_status check_hits(const vn_opened *o, const vn_checkpoints *all, const int *hits, vn_error *err)
{
	const char *const *glob = o->request.options->points;
	char               hint[VN_POINT_HINT];

	for (int i = 0; i < o->request.options->n_points; i++)
		if (!hits[i])
			return vn_fail(err, VN_ERR_USAGE, "--points '%s' matches no checkpoint of %s or %s%s%s", glob[i],
			               vn_recording_path(o->ref), vn_recording_path(o->cand),
			               has_list(glob[i]) ? ": give --points once for each" : "",
			               vn_point_hint(glob[i], entry_name, o->ref, vn_recording_count(o->ref), hint));
	if (all->n == 0)
		return vn_fail(err, VN_ERR_MISMATCH, "nothing to compare: the recordings hold no checkpoints");
	return VN_OK;
}

/* Moves checkpoint order[i] to place i, in place, because a second copy of millions would double
 * the memory. Overwrites order. */
static void permute_checkpoints(vn_checkpoint *point, int n, int *order)
{
	for (int i = 0; i < n; i++) {
		const vn_checkpoint first = point[i];
		int                 at = i;
		while (order[at] >= 0) { /* follow the cycle that begins at i */
			const int from = order[at];
			order[at] = -1;
			point[at] = from == i ? first : point[from];
			at = from;
		}
	}
}

/* Orders checkpoints whose place the reference does not record: by the plan, or as in the
 * candidate. Extras stay last. */
static vn_status put_in_order(const vn_opened *o, vn_checkpoints *all, vn_lines *notes, vn_error *err)
{
	int n = 0, unsaid = 0, said = 0;
	while (n < all->n && all->of[n].ref >= 0)
		unsaid += all->of[n++].order < 0;
	for (int i = 0; i < n; i++)
		said += all->of[i].cand >= 0 && vn_recording_entry(o->cand, all->of[i].cand)->order >= 0;
	const bool theirs_tell = o->plan || (unsaid == n && said > 0);
	if (unsaid)
		vn_lines_add(notes, "order: %d of %d checkpoints of the reference have no order; they are placed %s", unsaid, n,
		             o->plan       ? "in the order of the plan"
		             : theirs_tell ? "in the order of the candidate"
		                           : "by layer, and in a layer in the usual order of its points");
	if (!theirs_tell || !unsaid)
		return VN_OK;
	VN_FREED vn_sequence_entry *x = vn_alloc((size_t)n, sizeof *x);
	VN_FREED int               *order = vn_alloc((size_t)n, sizeof *order);
	for (int i = 0; i < n; i++) {
		const vn_checkpoint *p = &all->of[i];
		const int            theirs = p->cand < 0 ? -1 : vn_recording_entry(o->cand, p->cand)->order;
		x[i] = (vn_sequence_entry) { .name = p->name,
			                         .point = vn_recording_entry(o->ref, p->ref)->point,
			                         .step = p->step,
			                         .layer = p->layer,
			                         .said = o->plan ? p->value : theirs };
	}
	const vn_status st = vn_sequence(x, n, order, err);
	if (!st)
		permute_checkpoints(all->of, n, order);
	return st;
}

vn_status vn_match(const vn_opened *o, vn_checkpoints *all, vn_lines *notes, vn_error *err)
{
	const size_t n = (size_t)vn_recording_count(o->ref), k = (size_t)vn_recording_count(o->cand);
	matching     m = {
			.partner = vn_alloc(n, sizeof(int)),
			.used = vn_alloc_zero(k, sizeof(bool)),
			.home = vn_alloc(k, sizeof(int)),
			.head = vn_alloc(n, sizeof(int)),
			.next = vn_alloc(k, sizeof(int)),
			.hits = vn_alloc_zero((size_t)o->request.options->n_points, sizeof(int)),
	};
	vn_names  names = { 0 };
	vn_status st;

	all->of = vn_alloc_zero(n + k, sizeof *all->of);
	pair_up(o, &m);
	for (int i = 0; i < (int)n; i++)
		match_entry(o, all, notes, &m, i);
	for (int i = 0; i < (int)k; i++) {
		const vn_entry *e = vn_recording_entry(o->cand, i);
		if (m.home[i] >= 0 || m.used[i] || !vn_match_selects(o, e->name) || (e->same_as >= 0 && m.used[e->same_as]))
			continue;
		if (e->same_as >= 0 && m.home[e->same_as] < 0 && vn_match_selects(o, entry_name(o->cand, e->same_as)))
			count_hits(o, e->name, m.hits); /* extra under its first name */
		else
			add_pair(o, all, &m, e, -1, i);
	}
	if ((st = check_hits(o, all, m.hits, err)))
		goto done;
	vn_names_init(&names, o->plan);
	for (int i = 0; i < all->n; i++) {
		vn_checkpoint *p = &all->of[i];
		const vn_step *s = vn_recording_step(p->ref < 0 ? o->cand : o->ref, p->step);
		p->value = vn_names_root(&names, p->name);
		p->first_token = s ? s->first_row : 0;
	}
	st = put_in_order(o, all, notes, err);
done:
	vn_names_finish(&names);
	VN_FREE(m.partner, m.used, m.home, m.head, m.next, m.hits);
	return st;
}
