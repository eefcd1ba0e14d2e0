/* batched.c: see batched.h. */
#include "capture/view/batched.h"

#include "capture/view/box.h"
#include "capture/view/dims.h"
#include "capture/recording/packed.h"
#include "capture/recording/recording_internal.h"
#include "libref/plan/point.h"
#include "libref/base/alloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Consecutive indices. */
typedef struct index_run {
	int64_t from, n;
} index_run;

typedef struct row_job {
	vn_recording *r, *made;
	int64_t       row, batch, columns;
	bool          packed;          /* the row holds `batch` prompts one after the other */
	int32_t      *ids, *positions; /* of the row, without padding */
	int64_t       n;
	int64_t      *before; /* (columns + 1): real columns before each: no padding, and of this prompt */
	vn_step      *step;   /* as they become */
	index_run    *runs;   /* scratch for any list of runs */
	vn_error     *err;
} row_job;

static bool is_real(const row_job *j, int64_t column)
{
	return j->before[column + 1] > j->before[column];
}

/* The real columns of [from, to) as runs, relative to `from`. */
static int real_runs(const row_job *j, int64_t from, int64_t to, index_run *list)
{
	int n = 0;
	for (int64_t i = from; i < to; i++) {
		if (!is_real(j, i))
			continue;
		if (n && list[n - 1].from + list[n - 1].n == i - from)
			list[n - 1].n++;
		else
			list[n++] = (index_run) { i - from, 1 };
	}
	return n;
}

int64_t vn_batched_count(const vn_recording *r)
{
	return vn_recording_batch(r) > 0 ? vn_recording_batch(r) : vn_packed_count(r);
}

/* Takes the tokens of the columns that are no padding and belong to this prompt. */
static vn_status take_real(row_job *j, const int32_t *ids, const int32_t *positions, vn_error *err)
{
	int64_t  *of = j->packed ? vn_alloc((size_t)j->columns, sizeof *of) : NULL;
	vn_status st = of ? vn_packed_prompts(j->r, of, err) : VN_OK;
	for (int64_t i = 0; !st && i < j->columns; i++) {
		const int64_t at = j->packed ? i : j->row * j->columns + i;
		const bool    real = positions[at] >= 0 && ids[at] >= 0 && (!of || of[i] == j->row);
		j->before[i + 1] = j->before[i] + real;
		if (real) {
			j->ids[j->n] = ids[at];
			j->positions[j->n++] = positions[at];
		}
	}
	free(of);
	return st;
}

static vn_status read_row(row_job *j, vn_error *err)
{
	const int32_t *ids, *positions;
	const vn_step *step;
	const int64_t  all = vn_recording_tokens(j->r, &ids, &positions);
	j->batch = vn_batched_count(j->r);
	j->packed = vn_packed_count(j->r) > 0;
	if (j->row < 0 || j->row >= j->batch)
		return vn_fail(err, VN_ERR_USAGE, "%s: a batch of %" PRId64 " has no row %" PRId64, vn_recording_path(j->r),
		               j->batch, j->row);
	j->columns = j->packed ? all : all / j->batch;
	const size_t n = (size_t)j->columns + 1;
	const int    steps = vn_recording_steps(j->r, &step);
	j->ids = vn_alloc(n, sizeof *j->ids);
	j->positions = vn_alloc(n, sizeof *j->positions);
	j->before = vn_alloc_zero(n, sizeof *j->before);
	j->step = vn_alloc_zero((size_t)steps, sizeof *j->step);
	j->runs = vn_alloc(n, sizeof *j->runs);
	return take_real(j, ids, positions, err);
}

static vn_status cut_steps(row_job *j, vn_error *err)
{
	const vn_step *step;
	const int      n = vn_recording_steps(j->r, &step);
	for (int i = 0; i < n; i++) {
		const vn_step *s = &step[i];
		const int64_t  first = s->position + s->first_row, last = first + s->rows;
		if (s->position + s->tokens > j->columns)
			return vn_fail(err, VN_ERR_FORMAT,
			               "%s: /step.%d: %" PRId64 " tokens from position %" PRId64 " exceed a row's %" PRId64,
			               vn_recording_path(j->r), s->number, s->tokens, s->position, j->columns);
		if (real_runs(j, first, last, j->runs) > 1)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /step.%d: row %" PRId64 " has padding between its tokens",
			               vn_recording_path(j->r), s->number, j->row);
		j->step[i] = (vn_step) {
			.number = s->number,
			.position = j->before[s->position],
			.tokens = j->before[s->position + s->tokens] - j->before[s->position],
			.first_row = j->before[first] - j->before[s->position],
			.rows = j->before[last] - j->before[first],
		};
	}
	return VN_OK;
}

/* Whether a tensor covers several prompts; tables and weights do not. */
static bool of_prompts(const row_job *j, const vn_entry *e, vn_dims *d)
{
	const char *axes = vn_entry_axes(e), *why;
	return *axes && vn_dims_parse(axes, d, &why) && d->n == e->shape.rank &&
	       (vn_dims_find(d, "batch") >= 0 ||
	        (j->packed && (vn_dims_find(d, "token") >= 0 || vn_dims_find(d, "key") >= 0)));
}

/* Does a call leave this tensor as it is after its last token, and nothing else of it? */
static bool is_state(const vn_entry *e)
{
	const vn_point_info *p = vn_entry_point(e);

	return p && p->place == VN_INSIDE_LAYER && vn_axes_find(p->axes, "token") < 0 && vn_axes_find(p->axes, "key") < 0;
}

/* Makes the boxes of one tensor: one entry of the batch, its real tokens and its real keys. */
static vn_status make_boxes(row_job *j, int entry)
{
	const vn_entry *e = vn_recording_entry(j->r, entry);
	const vn_step  *s = vn_recording_step(j->r, e->step);
	vn_dims         dims;
	vn_box          box;
	int             keys = -1, n = 1;

	if (!of_prompts(j, e, &dims))
		return j->made->stateless && is_state(e) ? VN_OK : vn_derive_keep(j->made, e, 0, entry, j->err);
	vn_box_begin(&box, 0, entry, e);
	for (int k = 0; k < e->shape.rank; k++) {
		const char *word = dims.atom[k].word;
		int64_t     length = e->shape.dim[k];
		bool        real = false;
		if (strcmp(word, "batch") == 0) {
			if (length != j->batch)
				return vn_fail(j->err, VN_ERR_FORMAT, "%s: %s: a batch of %" PRId64 ", the run has %" PRId64,
				               vn_recording_path(j->r), e->name, length, j->batch);
			box.piece.from += j->row * box.stride[k];
			continue;
		}
		if (strcmp(word, "token") == 0 && length == s->rows) {
			const int64_t first = s->position + s->first_row;
			length = j->before[first + s->rows] - j->before[first];
			box.piece.from += (real_runs(j, first, first + s->rows, j->runs) ? j->runs[0].from : 0) * box.stride[k];
		} else if (j->packed && strcmp(word, "token") == 0 && length == j->batch && vn_entry_last(e)) {
			length = 1; /* the last token of each prompt */
			box.piece.from += j->row * box.stride[k];
		} else if (strcmp(word, "key") == 0 && length == s->position + s->tokens) {
			real = true;
			length = j->before[length];
		}
		const int at = vn_box_axis(&box, k, length, word);
		keys = real ? at : keys;
	}
	if (keys >= 0)
		n = real_runs(j, 0, s->position + s->tokens, j->runs);
	vn_piece *piece = vn_alloc((size_t)n, sizeof *piece);
	for (int64_t i = 0, at = 0; i < n; i++) {
		piece[i] = box.piece;
		if (keys >= 0) {
			piece[i].to[keys] = at;
			piece[i].size[keys] = j->runs[i].n;
			piece[i].from += j->runs[i].from * box.piece.stride[keys];
			at += j->runs[i].n;
		}
	}
	const vn_status st = vn_derive_add(j->made, &box.made, piece, n, VN_JOIN_PLACED, j->err);
	free(piece);
	return st;
}

/* Where the first call has padding, for vn_batched_padding. */
static void keep_padding(row_job *j)
{
	const vn_step *s = vn_recording_steps(j->r, &s) ? s : NULL;
	const int64_t  n = !s || j->packed ? 0 : s->position + s->tokens;

	j->made->padding.row = n ? vn_alloc((size_t)n, sizeof *j->made->padding.row) : NULL;
	j->made->padding.prompt = j->row;
	for (int64_t i = 0; i < n; i++)
		if (!is_real(j, i)) {
			j->made->padding.before += !j->before[i];
			j->made->padding.row[j->made->padding.n++] = i;
		}
}

vn_status vn_batched_row(vn_recording **r, int64_t row, vn_error *err)
{
	row_job        j = { .r = *r, .row = row, .err = err };
	const vn_step *step;
	vn_status      st;
	if (!(st = read_row(&j, err)) && !(st = cut_steps(&j, err)) &&
	    !(st = vn_derive(vn_recording_path(*r), r, 1, &j.made, err))) {
		*r = j.made;
		j.made->stateless = j.packed && row + 1 < j.batch;
		keep_padding(&j);
		for (int i = 0; !st && i < vn_recording_count(j.r); i++)
			st = make_boxes(&j, i);
		if (!st) {
			vn_derive_tokens(j.made, j.ids, j.positions, j.n);
			j.ids = j.positions = NULL;
			vn_derive_steps(j.made, j.step, vn_recording_steps(j.r, &step));
			st = vn_derive_end(j.made, err);
		}
	}
	free(j.ids);
	free(j.positions);
	free(j.before);
	free(j.step);
	free(j.runs);
	return st;
}

vn_status vn_batched_take(vn_recording **r, int64_t row, const char *option, int64_t *several, vn_error *err)
{
	const vn_status st = vn_recording_batch(*r) == 1 ? vn_batched_row(r, 0, err) : VN_OK; /* may be packed as well */
	const int64_t   rows = st ? 0 : vn_recording_batch(*r), prompts = st ? 0 : vn_batched_count(*r);

	*several = 0;
	if (st)
		return st;
	if (prompts == 0)
		return row <= 0 ? VN_OK
		                : vn_fail(err, VN_ERR_USAGE, "%s: %s %" PRId64 ", but it holds one prompt",
		                          vn_recording_path(*r), option, row);
	if (row >= 0)
		return vn_batched_row(r, row, err);
	if (rows)
		return vn_fail(err, VN_ERR_USAGE,
		               "%s: holds a batch of %" PRId64 " prompts: select one with %s 0 to %" PRId64 "",
		               vn_recording_path(*r), rows, option, rows - 1);
	*several = prompts;
	return VN_OK;
}

bool vn_batched_lacks(const vn_recording *r, const vn_entry *e)
{
	for (; r && is_state(e) && vn_recording_find(r, e->step, e->name) < 0; r = r->n_bases == 1 ? r->base[0] : NULL)
		if (r->stateless)
			return true;
	return false;
}

/* ---- what was left out ----------------------------------------------------------------------- */

/* Returns the recording of a batch row that r is derived from; NULL: r is not derived from one. */
static const vn_recording *row_of(const vn_recording *r)
{
	while (r && !r->padding.row)
		r = r->n_bases == 1 ? r->base[0] : NULL;
	return r;
}

/* Is it (batch, token, ...), with all tokens of the first call? */
static bool has_token_rows(const vn_recording *batch, const vn_entry *e)
{
	const vn_step *s = &batch->step[0];
	const char    *why;
	vn_dims        d;

	return vn_dims_parse(vn_entry_axes(e), &d, &why) && d.n == e->shape.rank && d.n > 1 &&
	       vn_dims_find(&d, "batch") == 0 && vn_dims_find(&d, "token") == 1 && !s->position && !s->first_row &&
	       s->rows == s->tokens && e->shape.dim[1] == s->tokens;
}

/* Reads the first n padding columns of a row of a batch. */
static vn_status read_padding(const vn_recording *row, int entry, int64_t n, double *x, vn_error *err)
{
	vn_recording   *batch = row->base[0];
	const vn_entry *e = vn_recording_entry(batch, entry);
	const int64_t   from = row->padding.prompt * e->shape.dim[1];
	const int64_t   size = vn_shape_count(&e->shape) / e->shape.dim[0] / e->shape.dim[1];
	void           *stored = vn_alloc(1, vn_dtype_bytes(e->dtype, (size_t)size) + 1);
	vn_status       st = VN_OK;

	for (int64_t i = 0; !st && i < n; i++)
		if (!(st = vn_recording_read(batch, entry, (from + row->padding.row[i]) * size, size, stored, err)))
			vn_to_f64(x + i * size, stored, e->dtype, (size_t)size);
	free(stored);
	return st;
}

vn_status vn_batched_padding(const vn_recording *r, const char *name, bool later, double **x, int64_t *n, vn_error *err)
{
	const vn_recording *made = row_of(r);
	vn_recording       *batch = made ? made->base[0] : NULL;
	const int           entry = batch && batch->n_steps ? vn_recording_find(batch, batch->step[0].number, name) : -1;
	const int64_t       rows = !made ? 0 : later ? made->padding.n : made->padding.before;
	vn_status           st;

	*x = NULL;
	*n = 0;
	if (entry < 0 || !rows || !has_token_rows(batch, vn_recording_entry(batch, entry)))
		return VN_OK;
	const vn_shape *s = &vn_recording_entry(batch, entry)->shape;
	*x = vn_alloc((size_t)(rows * (vn_shape_count(s) / s->dim[0] / s->dim[1])), sizeof **x);
	if ((st = read_padding(made, entry, rows, *x, err))) {
		free(*x);
		*x = NULL;
	} else
		*n = rows;
	return st;
}
