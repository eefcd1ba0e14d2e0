/* batched.c: see batched.h. */
#include "capture/view/batched.h"

#include "capture/view/box.h"
#include "capture/view/dims.h"
#include "capture/recording/packed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Indices that follow each other. */
typedef struct run {
	int64_t from, n;
} run;

typedef struct job {
	vn_recording *r, *made;
	int64_t   row, batch, columns;
	bool      packed;          /* the row is one of `batch` prompts one behind the other */
	int32_t  *ids, *positions; /* of the row, without padding */
	int64_t   n;
	bool     *real;            /* (columns) */
	int64_t  *before;          /* (columns + 1): real ones before it */
	vn_step  *step;            /* as they become */
	run      *runs;            /* room for any list of them */
	vn_error *err;
} job;

/* The real ones of columns [from, to) as runs, counted from `from`. */
static int real_runs(const job *j, int64_t from, int64_t to, run *list)
{
	int n = 0;
	for (int64_t i = from; i < to; i++) {
		if (!j->real[i])
			continue;
		if (n && list[n - 1].from + list[n - 1].n == i - from)
			list[n - 1].n++;
		else
			list[n++] = (run) { i - from, 1 };
	}
	return n;
}

int64_t vn_batched_count(const vn_recording *r)
{
	return vn_recording_batch(r) > 0 ? vn_recording_batch(r) : vn_packed_count(r);
}

/* Those that are no padding, and of this prompt. */
static vn_status which_are_real(job *j, const int32_t *ids, const int32_t *positions, vn_error *err)
{
	int64_t  *of = j->packed ? malloc(((size_t)j->columns + 1) * sizeof *of) : NULL;
	vn_status st = !j->packed ? VN_OK : of ? vn_packed_prompts(j->r, of, err)
	                          : vn_fail(err, VN_ERR_NOMEM, "%s: no memory for a row", vn_recording_path(j->r));
	for (int64_t i = 0; !st && i < j->columns; i++) {
		const int64_t at = j->packed ? i : j->row * j->columns + i;
		j->real[i] = positions[at] >= 0 && ids[at] >= 0 && (!of || of[i] == j->row);
	}
	free(of);
	return st;
}

static vn_status read_row(job *j, vn_error *err)
{
	const int32_t *ids, *positions;
	const vn_step *step;
	const int64_t all = vn_recording_tokens(j->r, &ids, &positions);
	j->batch = vn_batched_count(j->r);
	j->packed = vn_packed_count(j->r) > 0;
	if (j->row < 0 || j->row >= j->batch)
		return vn_fail(err, VN_ERR_USAGE, "%s: a batch of %" PRId64 " has no row %" PRId64, vn_recording_path(j->r), j->batch, j->row);
	j->columns = j->packed ? all : all / j->batch;
	const size_t n = (size_t)j->columns + 1;
	const int steps = vn_recording_steps(j->r, &step);
	j->ids = malloc(n * sizeof *j->ids);
	j->positions = malloc(n * sizeof *j->positions);
	j->real = calloc(n, sizeof *j->real);
	j->before = calloc(n + 1, sizeof *j->before);
	j->step = calloc((size_t)steps + 1, sizeof *j->step);
	j->runs = malloc(n * sizeof *j->runs);
	if (!j->ids || !j->positions || !j->real || !j->before || !j->step || !j->runs)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for a row", vn_recording_path(j->r));
	const vn_status st = which_are_real(j, ids, positions, err);
	if (st)
		return st;
	ids += j->packed ? 0 : j->row * j->columns;
	positions += j->packed ? 0 : j->row * j->columns;
	for (int64_t i = 0; i < j->columns; i++) {
		j->before[i + 1] = j->before[i] + j->real[i];
		if (j->real[i]) {
			j->ids[j->n] = ids[i];
			j->positions[j->n++] = positions[i];
		}
	}
	return VN_OK;
}

static vn_status cut_steps(job *j, vn_error *err)
{
	const vn_step *step;
	const int n = vn_recording_steps(j->r, &step);
	for (int i = 0; i < n; i++) {
		const vn_step *s = &step[i];
		const int64_t first = s->position + s->first_row, last = first + s->rows;
		if (s->position + s->tokens > j->columns)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /step.%d: %" PRId64 " tokens after %" PRId64 ", a row has %" PRId64, vn_recording_path(j->r),
			               s->number, s->tokens, s->position, j->columns);
		if (real_runs(j, first, last, j->runs) > 1)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /step.%d: row %" PRId64 " has padding between its tokens", vn_recording_path(j->r), s->number,
			               j->row);
		j->step[i] = (vn_step) {
			.number = s->number, .position = j->before[s->position], .tokens = j->before[s->position + s->tokens] - j->before[s->position],
			.first_row = j->before[first] - j->before[s->position], .rows = j->before[last] - j->before[first],
		};
	}
	return VN_OK;
}

/* Is it of several prompts? A table or a weight is not. */
static bool of_prompts(const job *j, const vn_entry *e, vn_dims *d)
{
	const char *axes = vn_entry_axes(e), *why;
	return *axes && vn_dims_parse(axes, d, &why) && d->n == e->shape.rank
	       && (vn_dims_find(d, "batch") >= 0 || (j->packed && (vn_dims_find(d, "token") >= 0 || vn_dims_find(d, "key") >= 0)));
}

/* Makes the boxes of one tensor: one entry of the batch, its real tokens and its real keys. */
static vn_status make_boxes(job *j, int entry)
{
	const vn_entry *e = vn_recording_entry(j->r, entry);
	const vn_step  *s = vn_recording_step(j->r, e->step);
	vn_dims     dims;
	vn_box      box;
	int         keys = -1, n = 1;

	if (!of_prompts(j, e, &dims))
		return vn_derive_keep(j->made, e, 0, entry, j->err);
	vn_box_begin(&box, 0, entry, e);
	for (int k = 0; k < e->shape.rank; k++) {
		const char *word = dims.atom[k].word;
		int64_t     length = e->shape.dim[k];
		bool        real = false;
		if (strcmp(word, "batch") == 0) {
			if (length != j->batch)
				return vn_fail(j->err, VN_ERR_FORMAT, "%s: %s: a batch of %" PRId64 ", the run has %" PRId64, vn_recording_path(j->r), e->name,
				               length, j->batch);
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
	vn_piece *piece = malloc(((size_t)n + 1) * sizeof *piece);
	if (!piece)
		return vn_fail(j->err, VN_ERR_NOMEM, "%s: no memory for %s", vn_recording_path(j->r), e->name);
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

vn_status vn_batched_row(vn_recording **r, int64_t row, vn_error *err)
{
	job j = { .r = *r, .row = row, .err = err };
	const vn_step *step;
	vn_status st;
	if (!(st = read_row(&j, err)) && !(st = cut_steps(&j, err)) && !(st = vn_derive(vn_recording_path(*r), r, 1, &j.made, err))) {
		*r = j.made;
		for (int i = 0; !st && i < vn_recording_count(j.r); i++)
			st = make_boxes(&j, i);
		if (!st && !(st = vn_derive_tokens(j.made, j.ids, j.positions, j.n, err))) {
			vn_derive_steps(j.made, j.step, vn_recording_steps(j.r, &step));
			st = vn_derive_end(j.made, err);
		}
	}
	free(j.ids);
	free(j.positions);
	free(j.real);
	free(j.before);
	free(j.step);
	free(j.runs);
	return st;
}
