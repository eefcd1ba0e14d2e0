/* match.c: which tensors of two recordings belong together: by name, and
 * nothing is broadcast, cut or reshaped to make them fit. */
#include "compare/compare.h"
#include "compare/names.h"

#include "libref/base/glob.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const status_text[VN_N_STATUS_WORDS] = {
	[VN_WITHIN] = "within", [VN_OUTSIDE] = "outside", [VN_UNLIMITED] = "unlimited", [VN_MISSING] = "missing",
	[VN_EXTRA] = "extra", [VN_EMPTY] = "empty", [VN_MISSHAPEN] = "misshapen", [VN_UNREADABLE] = "unreadable",
};

const char *vn_status_text(vn_status_word s)
{
	return status_text[s];
}

vn_status vn_entry_tensor(vn_recording *r, int entry, vn_tensor *t, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	*t = (vn_tensor) { .dtype = e->dtype, .shape = e->shape };
	return vn_recording_data(r, entry, &t->data, err);
}

static bool selected(const vn_comparison *c, const char *name)
{
	const vn_compare_options *o = c->options;
	for (int i = 0; i < o->n_points; i++)
		if (vn_glob_match(o->points[i], name))
			return true;
	return o->n_points == 0;
}

static const vn_step *step_of(const vn_recording *r, int number)
{
	const vn_step *s;
	const int n = vn_recording_steps(r, &s);
	for (int i = 0; i < n; i++)
		if (s[i].number == number)
			return &s[i];
	return NULL;
}

static const vn_point_info *point_of(const vn_entry *e)
{
	const char *dot = strchr(e->name, '.');
	vn_point p;
	if (vn_point_from_name(*e->point ? e->point : dot ? dot + 1 : e->name, &p))
		return vn_point_get(p);
	return NULL;
}

const char *vn_entry_axes(const vn_entry *e)
{
	const vn_point_info *p = *e->axes ? NULL : point_of(e);
	return p ? p->axes : e->axes;
}

static bool is_scores(const vn_entry *e)
{
	const vn_point_info *p = point_of(e);
	return strcmp(e->basis, "vocab") == 0 || (!*e->basis && p && strcmp(p->basis, "vocab") == 0);
}

static void unfit(vn_checkpoint *p, vn_status_word status)
{
	p->status = status;
	p->fails = true;
}

/* Everything that keeps two tensors of one name from being measured. */
static void check_fit(vn_comparison *c, vn_checkpoint *p)
{
	const vn_entry *r = vn_recording_entry(c->ref, p->ref), *d = vn_recording_entry(c->cand, p->cand);
	const vn_step  *rs = step_of(c->ref, r->step), *ds = step_of(c->cand, d->step);
	char a[VN_SHAPE_TEXT], b[VN_SHAPE_TEXT];

	if (rs && ds && (rs->position != ds->position || rs->tokens != ds->tokens)) {
		unfit(p, VN_MISSHAPEN);
		snprintf(p->detail, sizeof p->detail, "step %d is %" PRId64 " tokens after %" PRId64 " in the reference, %"
		         PRId64 " after %" PRId64 " in the candidate", r->step, rs->tokens, rs->position, ds->tokens, ds->position);
	} else if (rs && ds && (rs->first_row != ds->first_row || rs->rows != ds->rows)) {
		unfit(p, VN_MISSHAPEN);
		snprintf(p->detail, sizeof p->detail, "kept rows: %" PRId64 " from %" PRId64 " in the reference, %" PRId64
		         " from %" PRId64 " in the candidate", rs->rows, rs->first_row, ds->rows, ds->first_row);
	} else if (!vn_shape_equal(&r->shape, &d->shape)) {
		unfit(p, VN_MISSHAPEN);
		snprintf(p->detail, sizeof p->detail, "shape %s in the reference, %s in the candidate",
		         vn_shape_text(&r->shape, a), vn_shape_text(&d->shape, b));
	} else if (*r->axes && *d->axes && strcmp(r->axes, d->axes) != 0) {
		unfit(p, VN_MISSHAPEN);
		snprintf(p->detail, sizeof p->detail, "axes '%s' in the reference, '%s' in the candidate", r->axes, d->axes);
	} else if (*r->basis && *d->basis && strcmp(r->basis, d->basis) != 0) {
		unfit(p, VN_MISSHAPEN);
		snprintf(p->detail, sizeof p->detail, "basis '%s' in the reference, '%s' in the candidate", r->basis, d->basis);
	} else if (vn_shape_count(&r->shape) == 0) {
		unfit(p, VN_EMPTY);
		snprintf(p->detail, sizeof p->detail, "no elements: %s", vn_shape_text(&r->shape, a));
	}
}

static vn_checkpoint *add(vn_comparison *c, const vn_entry *e, int ref, int cand)
{
	vn_checkpoint *p = &c->point[c->n_points++];
	*p = (vn_checkpoint) {
		.name = e->name, .step = e->step, .order = e->order, .layer = e->layer, .ref = ref, .cand = cand,
		.scores = is_scores(e), .m = { .at = -1, .bad_at = -1, .worst_token = -1, .worst_row = -1 }, .worst = -1,
	};
	for (int i = 0; i < VN_N_METRICS; i++)
		p->floor[i] = (double)NAN;
	return p;
}

/* The entry that holds the numbers of entry i. */
static int root(const vn_recording *r, int i)
{
	const int other = vn_recording_entry(r, i)->same_as;
	return other >= 0 ? other : i;
}

static void mark_missing(vn_comparison *c, vn_checkpoint *p)
{
	vn_limit_set set;
	vn_limits_for(c->limits, p->name, &set);
	p->status = VN_MISSING;
	p->fails = !(c->options->allow & VN_ALLOW_MISSING) && !set.missing;
	snprintf(p->detail, sizeof p->detail, "not in the candidate%s", p->fails ? "" : " (allowed)");
}

static void mark_extra(vn_comparison *c, vn_checkpoint *p)
{
	vn_limit_set set;
	vn_limits_for(c->limits, p->name, &set);
	p->status = VN_EXTRA;
	p->fails = !(c->options->allow & VN_ALLOW_EXTRA) && !set.extra;
	snprintf(p->detail, sizeof p->detail, "not in the reference%s", p->fails ? "" : " (allowed)");
}

vn_status vn_match(vn_comparison *c, vn_error *err)
{
	const int n = vn_recording_count(c->ref), m = vn_recording_count(c->cand);
	int  *partner = malloc(((size_t)n + 1) * sizeof *partner);   /* of a reference's entry; -1 */
	bool *used = calloc((size_t)m + 1, sizeof *used);            /* candidate's entries */
	vn_names names = { 0 };
	vn_status st = VN_OK;

	c->point = calloc((size_t)n + (size_t)m + 1, sizeof *c->point);
	if (!partner || !used || !c->point) {
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for %d checkpoints", n + m);
		goto done;
	}
	for (int i = 0; i < n; i++) {
		const vn_entry *e = vn_recording_entry(c->ref, i);
		partner[i] = vn_recording_find(c->cand, e->step, e->name);
		if (partner[i] >= 0)
			used[partner[i]] = used[root(c->cand, partner[i])] = true;
		if (!selected(c, e->name))
			continue;
		/* A second name of one tensor on both sides was measured under the first. */
		if (e->same_as >= 0 && partner[i] >= 0 && selected(c, vn_recording_entry(c->ref, e->same_as)->name)) {
			const int first = vn_recording_find(c->cand, e->step, vn_recording_entry(c->ref, e->same_as)->name);
			if (first >= 0 && root(c->cand, first) == root(c->cand, partner[i]))
				continue;
		}
		vn_checkpoint *p = add(c, e, i, partner[i]);
		if (partner[i] < 0)
			mark_missing(c, p);
		else
			check_fit(c, p);
	}
	for (int i = 0; i < m; i++) {
		const vn_entry *e = vn_recording_entry(c->cand, i);
		if (used[i] || !selected(c, e->name) || vn_recording_find(c->ref, e->step, e->name) >= 0
		    || (e->same_as >= 0 && used[e->same_as]))
			continue;
		mark_extra(c, add(c, e, -1, i));
	}
	if (c->n_points == 0)
		st = vn_fail(err, VN_ERR_MISMATCH, "nothing to compare: %s",
		             c->options->n_points ? "no checkpoint matches --points" : "the recordings hold no checkpoints");
	if (!st && !(st = vn_names_init(&names, c->plan, err)))
		for (int i = 0; i < c->n_points; i++)
			c->point[i].value = vn_names_root(&names, c->point[i].name);
done:
	vn_names_finish(&names);
	free(partner);
	free(used);
	return st;
}
