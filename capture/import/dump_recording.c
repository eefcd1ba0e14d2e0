/* dump_recording.c: makes a recording of a dump; see dump.h. */
#include "capture/import/dump.h"

#include "capture/view/dims.h"
#include "capture/recording/recording_internal.h"
#include "libref/base/alloc.h"

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

void vn_dump_model_word(vn_recording *r, const char *key, const char *value)
{
	if (value && json_object_set_new_nocheck(r->model, key, json_string_nocheck(value)))
		vn_alloc_check(NULL);
}

static vn_entry entry_of(const vn_array *a, int i)
{
	return (vn_entry) { .name = a->name,
		                .point = "",
		                .op = a->op,
		                .basis = "",
		                .axes = a->axes,
		                .source_line = a->source_line ? a->source_line : "",
		                .step = a->step,
		                .order = i,
		                .layer = vn_name_layer(a->name),
		                .dtype = a->layout.dtype,
		                .shape = a->shape };
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
	return VN_OK;
}

vn_status vn_dump_recording(vn_dump *d, vn_recording **out, vn_error *err)
{
	vn_status     st = vn_recording_create(d->path, out, err);
	vn_recording *r = *out;
	if (st) {
		vn_dump_close(d);
		return st;
	}
	r->foreign = (vn_foreign) { .context = d, .read = read_foreign, .close = close_foreign };
	r->complete = d->complete;
	r->step = vn_alloc_zero((size_t)d->n_steps, sizeof *r->step);
	for (int i = 0; !st && i < d->n; i++) {
		const vn_array *a = &d->array[i];
		if ((st = check_dims(d, a, err)))
			break;
		const vn_entry        e = entry_of(a, i);
		const vn_entry_source source = { .offset = -1,
			                             .address = (uint64_t)i + 1,
			                             .foreign = i + 1,
			                             .parts = vn_import_layout_plain(&a->layout),
			                             .bytes = vn_shape_count(&a->shape) * (int64_t)vn_dtype_size(a->layout.dtype) };
		vn_alloc_check(vn_recording_add(r, &e, &source) ? r : NULL);
	}
	if (!st) {
		memcpy(r->step, d->step, (size_t)d->n_steps * sizeof *r->step);
		r->n_steps = d->n_steps;
		r->run = d->run;
		r->ids = d->ids;
		r->positions = d->positions;
		r->n_ids = r->n_positions = d->n_ids;
		r->batch = d->batch;
		d->ids = d->positions = NULL;
		st = vn_recording_sort(r, err);
	}
	if (st) {
		vn_recording_close(r);
		*out = NULL;
	}
	return st;
}
