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

/* Boxes for the axes before the token axis: outer indices [from, to) of axes [axis, tokens). */
static vn_status make_boxes(const vn_job *j, int side, int axis, int tokens, int64_t from, int64_t to, vn_region *box,
                            unsigned char **out, vn_error *err)
{
	const vn_tensor *t = side ? &j->cand : &j->ref;
	int64_t          inner = 1;
	vn_status        st = VN_OK;
	if (axis == tokens) {
		st = vn_recording_read_region(j->from[side].recording, j->from[side].entry, box, *out, err);
		*out += (size_t)vn_region_count(box, t->shape.rank) * vn_dtype_size(t->dtype);
		return st;
	}
	for (int a = axis + 1; a < tokens; a++)
		inner *= t->shape.dim[a];
	while (from < to && !st && axis < VN_MAX_RANK) { /* always true, but compilers cannot know it */
		const int64_t rest = from % inner, end = (from / inner + 1) * inner;
		box->from[axis] = from / inner;
		box->size[axis] = rest == 0 && to - from >= inner ? (to - from) / inner : 1;
		const int64_t next = rest == 0 && to - from >= inner ? from + box->size[axis] * inner : to < end ? to : end;
		st = make_boxes(j, side, axis + 1, tokens, rest, box->size[axis] == 1 ? rest + next - from : inner, box, out,
		                err);
		from = next;
	}
	return st;
}

vn_status vn_window_rows(vn_window *w, const vn_job *j, const vn_pair *p, int64_t outer, int64_t n_outer, int64_t row,
                         int64_t rows, vn_error *err)
{
	const int axis = vn_token_axis(j->axes, j->ref.shape.rank);
	vn_status st = VN_OK;

	w->outer = outer;
	w->row = row;
	w->rows = rows;
	if (!p->tokens) { /* slices serve as rows; the last may be shorter */
		const int64_t from = row * p->inner, n = rows * p->inner;
		return vn_window_run(w, j, from, p->n - from < n ? p->n - from : n, err);
	}
	for (int side = 0; side < 2 && !st; side++) {
		vn_region      box = { .from = { 0 } };
		unsigned char *out = w->room[side];
		memcpy(box.size, j->ref.shape.dim, sizeof box.size);
		box.from[axis] = row;
		box.size[axis] = rows;
		st = make_boxes(j, side, 0, axis, outer, outer + n_outer, &box, &out, err);
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
		here.data[side] += (size_t)(((o - w->outer) * w->rows + t - w->row) * p->inner) * vn_dtype_size(p->dtype[side]);
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
