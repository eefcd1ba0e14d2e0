/* explain_replayed.c: see explain_replayed.h. */
#include "compare/explain/explain_replayed.h"
#include "compare/explain/sentences.h"
#include "compare/rearrange/rearrange.h"
#include "compare/replayed/replayed.h"
#include "compare/replayed/variants.h"
#include "compare/trial/score.h"

#include "libref/base/alloc.h"
#include "libref/base/progress.h"

#include <stdlib.h>

enum { AT_ALL = 200 };        /* origins that are examined */
enum { MOST_READ = 1 << 23 }; /* numbers of one result: of a larger one the first rows */

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

vn_status vn_explain_replayed(const vn_opened *o, const vn_result *r, vn_all_findings *all, vn_error *err)
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
		if (all->n == AT_ALL) {
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
