/* view.c: see view.h. */
#include "capture/recording/recording_internal.h"
#include "capture/view/view.h"

#include "libref/plan/point.h"
#include "libref/base/alloc.h"
#include "libref/base/intern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---------------------------------------------------------------------------- */

bool vn_view_order(const char *from, const char *to, int rank, int order[VN_MAX_RANK])
{
	bool   taken[VN_MAX_RANK] = { false }, moves = false;
	size_t n, m;
	for (int i = 0; i < VN_MAX_RANK; i++)
		order[i] = i;
	for (int i = 0; i < rank; i++) {
		const char *want = vn_axes_word(to, i, &n);
		int         at = -1, times = 0;
		for (int k = 0; k < rank; k++) {
			const char *have = vn_axes_word(from, k, &m);
			if (n && n == m && memcmp(want, have, n) == 0) {
				at = k;
				times++;
			}
		}
		if (times != 1 || taken[at])
			return false;
		taken[at] = true;
		order[i] = at;
		moves = moves || at != i;
	}
	vn_axes_word(from, rank, &n);
	vn_axes_word(to, rank, &m);
	return moves && !n && !m;
}

/* ---- names of one tensor ---------------------------------------------------------------- */

/* The entries of i's step, which are contiguous. */
static void step_of(const vn_recording *r, int i, int *from, int *to)
{
	for (*from = i; *from > 0 && r->entry[*from - 1].step == r->entry[i].step; --*from)
		;
	for (*to = i + 1; *to < r->n_entries && r->entry[*to].step == r->entry[i].step; ++*to)
		;
}

/* A foreign file may store one tensor under two steps, and a view may change one of them. From here
 * on, aliases are within one step. */
static void separate_steps(vn_recording *r)
{
	int from, to;
	if (r->separate)
		return;
	for (int i = 0; i < r->n_entries; i++) {
		const int other = r->entry[i].same_as;
		if (other < 0 || r->entry[other].step == r->entry[i].step)
			continue;
		const uint64_t address = r->source[other].address;
		int            leader = -1;
		step_of(r, i, &from, &to);
		for (int k = from; k < i && leader < 0; k++)
			if (r->entry[k].same_as < 0 && r->source[k].address == address)
				leader = k;
		r->entry[i].same_as = leader;
		vn_gathered *own = r->source[i].gathered;
		r->source[i] = r->source[other];
		r->source[i].gathered = own;
		r->source[i].loaded = (vn_scratch) { 0 };
		r->source[i].view = NULL;
	}
	r->separate = true;
}

/* ---- making ---------------------------------------------------------------------------- */

/* Returns the view of a tensor; without a view, one that changes nothing. */
static vn_view *view_of(vn_recording *r, int i)
{
	vn_entry_source *s = &r->source[i];
	if (s->view)
		return s->view;
	s->view = vn_alloc_zero(1, sizeof *s->view);
	s->view->whole = r->entry[i].shape;
	for (int k = 0; k < VN_MAX_RANK; k++)
		s->view->order[k] = k;
	return s->view;
}

/* Sets the new shape and axes of entry i and of all its other names. */
static void describe_all(vn_recording *r, int i, const vn_shape *shape, const char *axes)
{
	const char *kept = vn_alloc_check(vn_intern(axes));
	int         from, to;

	step_of(r, i, &from, &to);
	for (int k = from; k < to; k++)
		if (vn_recording_primary(r, k) == i) {
			r->entry[k].shape = *shape;
			r->entry[k].viewed = true;
			r->entry[k].axes = kept;
		}
}

void vn_view_axes(vn_recording *r, int i, const int order[VN_MAX_RANK])
{
	separate_steps(r);
	vn_recording_release(r, i);
	vn_view       *v = view_of(r, i = vn_recording_primary(r, i));
	const vn_shape old = r->entry[i].shape;
	vn_shape       shape = old;
	char           axes[VN_AXES_MAX] = "";
	size_t         used = 0, n;
	const vn_view  was = *v;
	for (int k = 0; k < shape.rank; k++) {
		const char *w = vn_axes_word(r->entry[i].axes, order[k], &n);
		v->order[k] = was.order[order[k]];
		v->from[k] = was.from[order[k]];
		shape.dim[k] = old.dim[order[k]];
		used += (size_t)snprintf(axes + used, sizeof axes - used, "%s%.*s", k ? " " : "", (int)n, w);
	}
	describe_all(r, i, &shape, axes);
}

/* Keeps `rows` indices of one axis of a primary entry. */
static void cut_axis(vn_recording *r, int i, int axis, int64_t first, int64_t rows)
{
	vn_shape shape = r->entry[i].shape;
	vn_recording_release(r, i);
	view_of(r, i)->from[axis] += first;
	shape.dim[axis] = rows;
	describe_all(r, i, &shape, r->entry[i].axes);
}

vn_status vn_view_entry_rows(vn_recording *r, int i, int64_t first, int64_t rows, vn_error *err)
{
	separate_steps(r);
	i = vn_recording_primary(r, i);
	const int axis = vn_axes_find(vn_entry_axes(&r->entry[i]), "token");
	if (axis < 0 || axis >= r->entry[i].shape.rank || first < 0 || rows < 0 ||
	    first + rows > r->entry[i].shape.dim[axis])
		return vn_fail(err, VN_ERR_USAGE, "%s: %s does not have rows %" PRId64 "-%" PRId64, r->path, r->entry[i].name,
		               first, first + rows - 1);
	cut_axis(r, i, axis, first, rows);
	return VN_OK;
}

vn_status vn_view_rows(vn_recording *r, int step, int64_t first, int64_t rows, vn_error *err)
{
	const vn_step *said = vn_recording_step(r, step);
	vn_step       *s = said ? &r->step[said - r->step] : NULL;
	if (!s || first < s->first_row || rows < 1 || first + rows > s->first_row + s->rows)
		return vn_fail(err, VN_ERR_USAGE, "%s: step %d does not have rows %" PRId64 "-%" PRId64, r->path, step, first,
		               first + rows - 1);
	separate_steps(r);
	for (int i = 0; i < r->n_entries; i++) {
		const vn_entry *e = &r->entry[i];
		const int       axis = e->step == step && e->same_as < 0 ? vn_axes_find(vn_entry_axes(e), "token") : -1;
		if (axis >= 0 && axis < e->shape.rank && e->shape.dim[axis] == s->rows)
			cut_axis(r, i, axis, first - s->first_row, rows);
	}
	s->first_row = first;
	s->rows = rows;
	return VN_OK;
}
