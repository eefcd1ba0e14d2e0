/* dump_recording.c: makes a recording of a dump; see dump.h. */
#include "capture/import/dump.h"

#include "capture/view/dims.h"
#include "capture/recording/recording_internal.h"
#include "libref/base/intern.h"

#include <stdlib.h>
#include <string.h>

static vn_status read_foreign(void *context, int i, size_t at, size_t n, void *to, vn_error *err)
{
	return vn_dump_read(context, i, at, n, to, err);
}

static void close_foreign(void *context)
{
	vn_dump_close(context);
}

vn_status vn_dump_model_word(vn_recording *r, const char *key, const char *value, vn_error *err)
{
	vn_attribute_word *more = realloc(r->model, (size_t)(r->n_model + 1) * sizeof *more),
					  w = { strdup(key), strdup(value) };
	r->model = more ? more : r->model;
	if (!more || !w.key || !w.value) {
		free(w.key);
		free(w.value);
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", r->path);
	}
	r->model[r->n_model++] = w;
	return VN_OK;
}

/* The name is NULL when there is no memory. */
static vn_entry entry_of(const vn_array *a, int i)
{
	vn_entry e = { .step = a->step,
		           .order = i,
		           .layer = vn_name_layer(a->name),
		           .dtype = a->layout.dtype,
		           .shape = a->shape,
		           .same_as = -1 };
	e.point = e.basis = "";
	e.axes = vn_intern(a->axes);
	e.op = vn_intern(a->op);
	e.source_line = vn_intern(a->source_line ? a->source_line : "");
	e.name = e.axes && e.op && e.source_line ? vn_intern(a->name) : NULL;
	return e;
}

static vn_status check_dims(const vn_dump *d, const vn_array *a, vn_error *err)
{
	vn_dims     dims;
	const char *why;
	char        text[VN_SHAPE_TEXT];
	if (*a->axes && vn_dims_parse(a->axes, &dims, &why) && dims.rank != a->shape.rank)
		return vn_fail(err, VN_ERR_SHAPE, "%s: %s: its dims '%s' name %d axes, its shape %s has %d", d->path, a->name,
		               a->axes, dims.rank, vn_shape_text(&a->shape, text), a->shape.rank);
	if (a->step >= d->n_steps)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s: is in step %d, but the tokens of that step are not given", d->path,
		               a->name, a->step);
	if (a->layout.bits)
		return vn_fail(
			err, VN_ERR_UNSUPPORTED,
			"%s: %s: its numbers of %d bytes may or may not be %s: state the format in a manifest or with --bits",
			d->path, a->name, a->layout.width, a->layout.width == 2 ? "bfloat16" : "float8");
	return VN_OK;
}

vn_status vn_dump_recording(vn_dump *d, vn_recording **out, vn_error *err)
{
	vn_recording *r = *out = calloc(1, sizeof *r);
	vn_status     st = VN_OK;
	if (!r) {
		vn_dump_close(d);
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a recording");
	}
	r->fd = -1;
	r->foreign = (vn_foreign) { .context = d, .read = read_foreign, .close = close_foreign };
	r->complete = d->complete;
	r->path = strdup(d->path);
	r->entry = calloc((size_t)d->n + 1, sizeof *r->entry);
	r->source = calloc((size_t)d->n + 1, sizeof *r->source);
	r->step = calloc((size_t)d->n_steps + 1, sizeof *r->step);
	if (!r->path || !r->entry || !r->source || !r->step)
		st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %d tensors", d->path, d->n);
	for (int i = 0; !st && i < d->n; i++) {
		const vn_array *a = &d->array[i];
		if ((st = check_dims(d, a, err)))
			break;
		r->entry[r->n_entries] = entry_of(a, i);
		if (!r->entry[r->n_entries].name) {
			st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %d names", d->path, d->n);
			break;
		}
		r->source[r->n_entries++] = (vn_entry_source) { .offset = -1,
			                                            .address = (uint64_t)i + 1,
			                                            .foreign = i + 1,
			                                            .parts = vn_import_layout_plain(&a->layout),
			                                            .bytes = vn_shape_count(&a->shape) *
			                                                     (int64_t)vn_dtype_size(a->layout.dtype) };
	}
	if (!st) {
		memcpy(r->step, d->step, (size_t)d->n_steps * sizeof *r->step);
		r->n_steps = d->n_steps;
		r->run = d->run;
		r->ids = d->ids;
		r->positions = d->positions;
		r->n_ids = r->n_positions = d->n_ids;
		d->ids = d->positions = NULL;
		st = vn_recording_sort(r, err);
	}
	if (st) {
		vn_recording_close(r);
		*out = NULL;
	}
	return st;
}
