/* dump_safetensors.c: the tensors of a .safetensors file, each under its name. */
#include "capture/import/dump.h"

#include "libref/model/safetensors.h"

#include <stdlib.h>
#include <string.h>

bool vn_dump_safetensors_layout(const vn_source_tensor *t, vn_import_layout *layout, vn_shape *shape)
{
	const bool wide = strcmp(t->dtype, "I64") == 0;
	vn_dtype   dtype = 0;
	if (t->rank > VN_MAX_RANK)
		return false;
	shape->rank = t->rank;
	memcpy(shape->dim, t->dim, (size_t)t->rank * sizeof *t->dim);
	while (dtype < VN_N_DTYPES && strcmp(wide ? "I32" : t->dtype, vn_dtype_word(dtype)) != 0)
		dtype++;
	if (dtype == VN_N_DTYPES)
		return false;
	*layout = (vn_import_layout) {
		.dtype = dtype, .stored = dtype, .width = wide ? 8 : (int)vn_dtype_size(dtype), .wide_int = wide
	};
	return true;
}

static void close_file(vn_dump *d)
{
	vn_safetensors_close(d->state);
}

vn_status vn_dump_open_safetensors(vn_dump *d, vn_error *err)
{
	static const char *const said[] = { "engine", "precision" };
	vn_safetensors          *f;
	vn_status                st = vn_safetensors_open(d->path, &f, err);
	if (st)
		return st;
	d->state = f;
	d->kind = "safetensors";
	d->close = close_file;
	for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
		const char *word = vn_safetensors_meta(f, said[i]);
		if (word && !vn_dump_fact_wrong(d, said[i], word))
			vn_facts_set(&d->run, said[i], "%s", word);
	}
	for (size_t i = 0; i < vn_safetensors_count(f); i++) {
		const vn_source_tensor *t = vn_safetensors_at(f, i);
		int                     step;
		vn_array               *a = vn_dump_add(d, d->path, vn_dump_step_of(t->name, &step), NULL, NULL, err);
		if (!a)
			return VN_ERR_FORMAT;
		a->step = step;
		a->data = t->data;
		if (t->rank > VN_MAX_RANK)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %s: has %d axes; up to %d are read", d->path, a->name, t->rank,
			               VN_MAX_RANK);
		if (!vn_dump_safetensors_layout(t, &a->layout, &a->shape))
			a->layout = (vn_import_layout) {
				.unread = "its dtype is not one of F32, F16, BF16, F64, I32, I64, F8_E4M3 and "
						  "F8_E5M2"
			};
	}
	return VN_OK;
}
