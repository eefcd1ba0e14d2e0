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
	VN_FREED int64_t *of = j->packed ? vn_alloc((size_t)j->columns, sizeof *of) : NULL;
	vn_status         st = of ? vn_packed_prompts(j->r, of, err) : VN_OK;
	for (int64_t i = 0; !st && i < j->columns; i++) {
		const int64_t at = j->packed ? i : j->row * j->columns + i;
		const bool    real = positions[at] >= 0 && ids[at] >= 0 && (!of || of[i] == j->row);
		j->before[i + 1] = j->before[i] + real;
		if (real) {
			j->ids[j->n] = ids[at];
			j->positions[j->n++] = positions[at];
		}
	}
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
	VN_FREED vn_piece *piece = vn_alloc((size_t)n, sizeof *piece);
	for (int64_t i = 0, at = 0; i < n; i++) {
		piece[i] = box.piece;
		if (keys >= 0) {
			piece[i].to[keys] = at;
			piece[i].size[keys] = j->runs[i].n;
			piece[i].from += j->runs[i].from * box.piece.stride[keys];
			at += j->runs[i].n;
		}
	}
	return vn_derive_add(j->made, &box.made, piece, n, VN_JOIN_PLACED, j->err);
}

/* Which columns are not this prompt's, for vn_batched_padding. */
static void keep_padding(row_job *j)
{
	const vn_step *s = vn_recording_steps(j->r, &s) ? s : NULL;
	const int64_t  n = !s ? 0 : j->packed ? j->columns : s->position + s->tokens;

	j->made->padding.row = n ? vn_alloc((size_t)n, sizeof *j->made->padding.row) : NULL;
	j->made->padding.prompt = j->row;
	j->made->padding.packed = j->packed;
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
	VN_FREE(j.ids, j.positions, j.before, j.step, j.runs);
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

/* Is it (batch, token, ...), or of packed prompts (token, ...), with all tokens of its call? */
static bool has_token_rows(const vn_recording *row, const vn_entry *e)
{
	const vn_step *s = vn_recording_step(row->base[0], e->step);
	const int      at = row->padding.packed ? 0 : 1;
	const char    *why;
	vn_dims        d;

	return vn_dims_parse(vn_entry_axes(e), &d, &why) && d.n == e->shape.rank && d.n > at &&
	       vn_dims_find(&d, "batch") == at - 1 && vn_dims_find(&d, "token") == at && !s->first_row &&
	       s->rows == s->tokens && e->shape.dim[at] == s->tokens;
}

/* How many of the columns precede this prompt's tokens in that call. Of a batch: of the first
 * call. */
static int64_t count_before(const vn_recording *row, const vn_step *s)
{
	int64_t n = 0, column = s->position;

	if (!row->padding.packed)
		return s->position ? row->padding.n : row->padding.before;
	while (n < row->padding.n && row->padding.row[n] < column)
		n++;
	for (; n < row->padding.n && row->padding.row[n] == column; column++)
		n++;
	return n;
}

/* Finds the tensor in the call of a column, *k or later, and *from: where the column's row begins
 * in it. Returns the size of the row, 0: the call lacks it. */
static int64_t find_column(const vn_recording *row, const char *name, int64_t column, int *k, int *entry, int64_t *from)
{
	const vn_recording *batch = row->base[0];
	const bool          packed = row->padding.packed;

	while (*k + 1 < batch->n_steps && column >= batch->step[*k + 1].position)
		++*k;
	const vn_step *s = &batch->step[*k];
	if ((*entry = vn_recording_find(batch, s->number, name)) < 0 ||
	    !has_token_rows(row, vn_recording_entry(batch, *entry)))
		return 0;
	const vn_shape *shape = &vn_recording_entry(batch, *entry)->shape;
	const int64_t   size = vn_shape_count(shape) / s->tokens / (packed ? 1 : shape->dim[0]);
	*from = (column - s->position + (packed ? 0 : row->padding.prompt * s->tokens)) * size;
	return size;
}

/* Reads the first n columns. *x: NULL if a call lacks them. */
static vn_status read_padding(const vn_recording *row, const char *name, int64_t n, double **x, vn_error *err)
{
	int64_t   size = 0, from;
	int       k = 0, entry;
	vn_status st = VN_OK;

	for (int64_t i = 0; !st && i < n; i++) {
		const int64_t width = find_column(row, name, row->padding.row[i], &k, &entry, &from);
		if (!width || (i && width != size))
			break;
		if (!i)
			*x = vn_alloc((size_t)((n + 1) * width), sizeof **x);
		size = width;
		/* the room of one row more takes the numbers as they are stored */
		double *stored = *x + n * size;
		if (!(st = vn_recording_read(row->base[0], entry, from, size, stored, err)))
			vn_to_f64(*x + i * size, stored, vn_recording_entry(row->base[0], entry)->dtype, (size_t)size);
		if (!st && i + 1 == n)
			return VN_OK;
	}
	free(*x);
	*x = NULL;
	return st;
}

bool vn_batched_is_packed(const vn_recording *r)
{
	const vn_recording *made = row_of(r);

	return made && made->padding.packed;
}

vn_status vn_batched_padding(const vn_recording *r, const char *name, int step, double **x, int64_t *n, vn_error *err)
{
	const vn_recording *made = row_of(r);
	const vn_step      *s = made ? vn_recording_step(made->base[0], step) : NULL;
	const int64_t       rows = s ? count_before(made, s) : 0;
	const vn_status     st = (*x = NULL, rows ? read_padding(made, name, rows, x, err) : VN_OK);

	*n = *x ? rows : 0;
	return st;
}
