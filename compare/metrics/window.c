/* window.c: see window.h. */
#include "compare/metrics/window.h"

#include <stdlib.h>
#include <string.h>

enum { ALL_BYTES = 64 << 20, WIDEST = 8, MOST = 1 << 20 };

vn_window *vn_windows_open(int threads)
{
	vn_window *w = calloc((size_t)threads, sizeof *w);
	int64_t    most = ALL_BYTES / (2 * WIDEST) / threads;
	most = most > MOST ? MOST : most < VN_SLICE ? VN_SLICE : most / VN_SLICE * VN_SLICE;
	for (int i = 0; w && i < threads; i++) {
		w[i].most = most;
		for (int side = 0; side < 2; side++)
			if (!(w[i].room[side] = malloc((size_t)most * WIDEST))) {
				vn_windows_close(w, threads);
				return NULL;
			}
	}
	return w;
}

void vn_windows_close(vn_window *w, int threads)
{
	for (int i = 0; w && i < threads; i++)
		for (int side = 0; side < 2; side++)
			free(w[i].room[side]);
	free(w);
}

bool vn_window_holds(vn_window *w, int64_t elements)
{
	for (int side = 0; side < 2 && elements > w->most; side++) {
		unsigned char *more = realloc(w->room[side], (size_t)elements * WIDEST);
		if (!more)
			return false;
		w->room[side] = more;
	}
	w->most = elements > w->most ? elements : w->most;
	return true;
}

/* One side of a job, being read box by box. */
typedef struct side_read {
	const vn_job  *job;
	int            side, tokens; /* the token axis */
	vn_region      box;
	unsigned char *out;
} side_read;

/* Boxes for the axes before the token axis: outer indices [from, to) of axes [axis, tokens). */
static vn_status read_boxes(side_read *r, int axis, int64_t from, int64_t to, vn_error *err)
{
	const vn_tensor *t = r->side ? &r->job->cand : &r->job->ref;
	vn_region       *box = &r->box;
	int64_t          inner = 1;
	vn_status        st = VN_OK;
	if (axis == r->tokens) {
		st = vn_recording_read_region(r->job->from[r->side].recording, r->job->from[r->side].entry, box, r->out, err);
		r->out += (size_t)vn_region_count(box, t->shape.rank) * vn_dtype_size(t->dtype);
		return st;
	}
	for (int a = axis + 1; a < r->tokens; a++)
		inner *= t->shape.dim[a];
	while (from < to && !st && axis < VN_MAX_RANK) { /* always true, but compilers cannot know it */
		const int64_t rest = from % inner, end = (from / inner + 1) * inner;
		box->from[axis] = from / inner;
		box->size[axis] = rest == 0 && to - from >= inner ? (to - from) / inner : 1;
		const int64_t next = rest == 0 && to - from >= inner ? from + box->size[axis] * inner : to < end ? to : end;
		st = read_boxes(r, axis + 1, rest, box->size[axis] == 1 ? rest + next - from : inner, err);
		from = next;
	}
	return st;
}

vn_status vn_window_rows(vn_window *w, const vn_job *j, const vn_pair *p, vn_row_range rows, vn_error *err)
{
	const int axis = vn_token_axis(j->axes, j->ref.shape.rank);
	vn_status st = VN_OK;

	w->holds = rows;
	if (!p->tokens) { /* slices serve as rows; the last may be shorter */
		const int64_t from = rows.row * p->inner, n = rows.rows * p->inner;
		return vn_window_run(w, j, from, p->n - from < n ? p->n - from : n, err);
	}
	for (int side = 0; side < 2 && !st; side++) {
		side_read r = { .job = j, .side = side, .tokens = axis, .out = w->room[side] };
		memcpy(r.box.size, j->ref.shape.dim, sizeof r.box.size);
		r.box.from[axis] = rows.row;
		r.box.size[axis] = rows.rows;
		st = read_boxes(&r, 0, rows.outer, rows.outer + rows.outers, err);
	}
	return st;
}

vn_status vn_window_run(vn_window *w, const vn_job *j, int64_t from, int64_t n, vn_error *err)
{
	vn_status st = VN_OK;
	for (int side = 0; side < 2 && !st; side++)
		st = vn_recording_read(j->from[side].recording, j->from[side].entry, from, n, w->room[side], err);
	return st;
}

vn_pair vn_window_of_row(const vn_window *w, const vn_pair *p, int64_t o, int64_t t)
{
	vn_pair here = vn_window_of_run(w, p, (o * p->rows + t) * p->inner);
	for (int side = 0; side < 2; side++)
		here.data[side] += (size_t)(((o - w->holds.outer) * w->holds.rows + t - w->holds.row) * p->inner) *
		                   vn_dtype_size(p->dtype[side]);
	return here;
}

vn_pair vn_window_of_run(const vn_window *w, const vn_pair *p, int64_t from)
{
	vn_pair here = *p;
	here.origin = from;
	for (int side = 0; side < 2; side++)
		here.data[side] = w->room[side];
	return here;
}
