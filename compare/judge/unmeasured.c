/* unmeasured.c: see unmeasured.h. */
#include "compare/judge/unmeasured.h"
#include "compare/judge/judge_left_out.h"
#include "compare/text/json.h"

bool vn_judge_is_unmeasured(const vn_checkpoint *p)
{
	return p->status == VN_MISSING || p->status == VN_EXTRA || p->status == VN_EMPTY || p->status == VN_MISSHAPEN ||
	       p->status == VN_UNREADABLE;
}

static json_t *describe_entry(const vn_recording *r, int entry)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	const vn_step  *s = vn_recording_step(r, e->step);
	json_t         *j = json_pack("{s:s, s:o, s:o, s:o}", "dtype", vn_dtype_name(e->dtype), "shape",
	                              vn_json_integers(e->shape.dim, e->shape.rank), "axes", vn_json_text(e->axes), "basis",
	                              vn_json_text(e->basis));
	if (s)
		json_object_update_new(j, json_pack("{s:I, s:I, s:I, s:I}", "position", (json_int_t)s->position, "tokens",
		                                    (json_int_t)s->tokens, "first_row", (json_int_t)s->first_row, "rows",
		                                    (json_int_t)s->rows));
	return j;
}

static json_t *describe_absent(const vn_opened *o, const vn_checkpoint *p)
{
	const vn_left_out *l = p->ref >= 0 ? vn_left_out_of(o, p) : NULL;
	json_t            *j = l || p->not_run ? json_object() : json_null();
	if (l) {
		json_t *measured = json_object();
		for (int i = 0; i < l->n; i++)
			json_object_set_new(measured, l->measure[i].name, json_real(l->measure[i].value));
		json_object_set_new(j, "left_out", json_string(l->digest.hex));
		json_object_set_new(j, "dtype", json_string(vn_dtype_name(l->dtype)));
		json_object_set_new(j, "shape", vn_json_integers(l->shape.dim, l->shape.rank));
		json_object_set_new(j, "measured", measured);
	}
	json_object_set_new(j, "not_run", p->not_run ? json_true() : NULL);
	return j;
}

json_t *vn_unmeasured_sides(const vn_opened *o, const vn_checkpoint *p)
{
	json_t *sides = json_array();
	json_array_append_new(sides, p->ref >= 0 ? describe_entry(o->ref, p->ref) : json_null());
	json_array_append_new(sides, p->cand >= 0 ? describe_entry(o->cand, p->cand) : describe_absent(o, p));
	return sides;
}
