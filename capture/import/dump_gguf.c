/* dump_gguf.c: reads the tensors of a GGUF file under their own names; quantised blocks become
 * float32. */
#include "capture/import/dump.h"

#include "libref/model/gguf.h"

static void close_file(vn_dump *d)
{
	vn_gguf_close(d->state);
}

vn_status vn_dump_open_gguf(vn_dump *d, vn_error *err)
{
	vn_gguf  *f;
	vn_status st = vn_gguf_open(d->path, &f, err);
	if (st)
		return st;
	d->state = f;
	d->kind = "gguf";
	d->close = close_file;
	for (size_t i = 0; i < vn_gguf_count(f); i++) {
		const vn_gguf_tensor *t = vn_gguf_at(f, i);
		int                   step;
		vn_array             *a = vn_dump_add(d, d->path, vn_dump_step_of(t->name, &step), NULL, NULL, err);
		if (!a)
			return VN_ERR_FORMAT;
		const bool blocks = t->t.dtype >= VN_N_DTYPES;
		a->step = step;
		a->data = t->t.data;
		a->shape = t->t.shape;
		a->layout = (vn_import_layout) { .stored = t->t.dtype,
			                             .dtype = blocks ? VN_F32 : t->t.dtype,
			                             .width = blocks ? 0 : (int)vn_dtype_size(t->t.dtype) };
	}
	return VN_OK;
}
