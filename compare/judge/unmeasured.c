/* unmeasured.c: see unmeasured.h. */
#include "compare/judge/unmeasured.h"
#include "compare/judge/judge_left_out.h"

bool vn_judge_is_unmeasured(const vn_checkpoint *p)
{
	return p->status == VN_MISSING || p->status == VN_EXTRA || p->status == VN_EMPTY || p->status == VN_MISSHAPEN ||
	       p->status == VN_UNREADABLE;
}

static json_t *list_sizes(const vn_shape *s)
{
	json_t *list = json_array();
	for (int i = 0; i < s->rank; i++)
		json_array_append_new(list, json_integer(s->dim[i]));
	return list;
}

static json_t *describe_entry(const vn_recording *r, int entry)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	const vn_step  *s = vn_recording_step(r, e->step);
	json_t         *j = json_object();
	json_object_set_new(j, "dtype", json_string(vn_dtype_name(e->dtype)));
	json_object_set_new(j, "shape", list_sizes(&e->shape));
	json_object_set_new(j, "axes", vn_json_text(e->axes));
	json_object_set_new(j, "basis", vn_json_text(e->basis));
	if (s) {
		json_object_set_new(j, "position", json_integer(s->position));
		json_object_set_new(j, "tokens", json_integer(s->tokens));
		json_object_set_new(j, "first_row", json_integer(s->first_row));
		json_object_set_new(j, "rows", json_integer(s->rows));
	}
	return j;
}

static json_t *describe_absent(const vn_comparison *c, const vn_checkpoint *p)
{
	const vn_left_out *l = p->ref >= 0 ? vn_left_out_of(c, p) : NULL;
	json_t            *j = l || p->not_run ? json_object() : json_null();
	if (l) {
		json_t *measured = json_object();
		for (int i = 0; i < l->n; i++)
			json_object_set_new(measured, l->measure[i].name, json_real(l->measure[i].value));
		json_object_set_new(j, "left_out", json_string(l->digest.hex));
		json_object_set_new(j, "dtype", json_string(vn_dtype_name(l->dtype)));
		json_object_set_new(j, "shape", list_sizes(&l->shape));
		json_object_set_new(j, "measured", measured);
	}
	if (p->not_run)
		json_object_set_new(j, "not_run", json_true());
	return j;
}

json_t *vn_unmeasured_sides(const vn_comparison *c, const vn_checkpoint *p)
{
	json_t *sides = json_array();
	json_array_append_new(sides, p->ref >= 0 ? describe_entry(c->opened.ref, p->ref) : json_null());
	json_array_append_new(sides, p->cand >= 0 ? describe_entry(c->opened.cand, p->cand) : describe_absent(c, p));
	return sides;
}
