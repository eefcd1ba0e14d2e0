/* recording_rows.c: do tensors have the token rows that their steps state? recording_internal.h */
#include "capture/recording/packed.h"
#include "capture/recording/recording_internal.h"

#include <inttypes.h>

/* A step states which rows of its call are recorded, unless the input of the run was no token ids.
 * Tensors labelled by tokens have that many rows, or at the end of the model the last row of each
 * prompt (vn_entry_last). */
void vn_recording_mark_rows(vn_recording *r)
{
	const int64_t prompts = vn_packed_count(r);
	for (int i = 0; i < r->n_entries; i++) {
		vn_entry      *e = &r->entry[i];
		const int      axis = vn_axes_find(e->axes, "token");
		const int64_t  n = axis >= 0 && axis < e->shape.rank ? e->shape.dim[axis] : -1;
		const vn_step *s = vn_recording_step(r, e->step);
		const int64_t  rows = s && s->tokens ? s->rows : -1;
		e->rows_off = rows >= 0 && n >= 0 && n != rows && !((n == 1 || n == prompts) && vn_entry_last(e));
	}
}

vn_status vn_recording_check_rows(vn_recording *r, vn_error *err)
{
	vn_recording_mark_rows(r);
	for (int i = 0; i < r->n_entries; i++) {
		const vn_entry *e = &r->entry[i];
		const vn_step  *s = vn_recording_step(r, e->step);
		char            shape[VN_SHAPE_TEXT];
		if (e->rows_off)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /step.%d: %" PRId64 " %s, but %s of shape %s has axes '%s'",
			               r->path, e->step, s->rows,
			               s->rows < s->tokens ? "rows were kept"
			               : s->rows == 1      ? "token went in"
			                                   : "tokens went in",
			               e->name, vn_shape_text(&e->shape, shape), e->axes);
	}
	return VN_OK;
}
