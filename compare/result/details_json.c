/* details_json.c: one divergence in full: values, statistics, inputs, the layout that matches,
 * profile; see document_json.h. */
#include "compare/result/document_json.h"

#include "compare/comparison/checkpoint.h"

#include <math.h>

json_t *vn_json_name(const vn_checkpoint *p)
{
	char label[VN_NAME_MAX + 24]; /* unescaped: vn_label is for people */
	if (p->step == 0)
		return vn_json_text(p->name);
	snprintf(label, sizeof label, "step.%d/%s", p->step, p->name);
	return vn_json_text(label);
}

static json_t *statistics_json(const vn_stats *s)
{
	json_t *j = json_object(), *flags = json_object();
	vn_json_put_real(j, "min", s->min, flags);
	vn_json_put_real(j, "max", s->max, flags);
	vn_json_put_real(j, "mean", s->mean, flags);
	vn_json_put_real(j, "rms", s->rms, flags);
	vn_json_put_real(j, "absmax", s->absmax, flags);
	vn_json_put_flags(j, "not_finite", flags);
	json_object_set_new(j, "nan", json_integer(s->nan));
	json_object_set_new(j, "inf", json_integer(s->inf));
	return j;
}

static json_t *side_json(const vn_detail *d, int which, const vn_entry *e, double at)
{
	json_t *j = json_object(), *around = json_array(), *flags = json_object();
	for (int i = 0; i < d->n_around; i++)
		json_array_append_new(around, isfinite(d->around[which][i])
		                                  ? json_real(d->around[which][i])
		                                  : json_string(vn_json_not_finite(d->around[which][i])));
	json_object_set_new(j, "dtype", json_string(vn_dtype_name(e->dtype)));
	json_object_set_new(j, "source_line", *e->source_line ? vn_json_text(e->source_line) : json_null());
	vn_json_put_real(j, "worst", at, flags);
	vn_json_put_flags(j, "not_finite", flags);
	json_object_set_new(j, "around", around);
	json_object_set_new(j, "statistics", statistics_json(&d->stats[which]));
	return j;
}

static json_t *inputs_json(const vn_result *r, const vn_detail *d)
{
	json_t *a = d->n_input < 0 ? json_null() : json_array();
	for (int i = 0; i < d->n_input; i++)
		json_array_append_new(a, json_pack("{s:o, s:s}", "name", vn_json_name(&r->checkpoints.of[d->input[i]]),
		                                   "status", vn_checkpoint_status_text(r->checkpoints.of[d->input[i]].status)));
	return a;
}

/* Energies of a long axis are summed over equal runs of indices, because a page
 * cannot draw finer. */
static json_t *energies_json(const vn_axis_profile *x, bool of_ref, int64_t run)
{
	json_t *a = json_array();
	for (int64_t i = 0; i < x->n; i += run) {
		double sum = 0;
		for (int64_t j = i; j < i + run && j < x->n; j++)
			sum += of_ref ? x->at[j].ref : x->at[j].error;
		json_array_append_new(a, isfinite(sum) ? json_real(sum) : json_string(vn_json_not_finite(sum)));
	}
	return a;
}

static json_t *layout_match_json(const vn_opened *opened, const vn_layout_match *like)
{
	static const char *const kinds[] = {
		[VN_LAYOUT_MATCH_OTHER] = "other",       [VN_LAYOUT_MATCH_OWN] = "own",
		[VN_LAYOUT_MATCH_PERMUTED] = "permuted", [VN_LAYOUT_MATCH_SHIFTED] = "shifted",
		[VN_LAYOUT_MATCH_REVERSED] = "reversed", [VN_LAYOUT_MATCH_COLUMNS] = "columns",
		[VN_LAYOUT_MATCH_HEADS] = "heads",
	};
	const vn_entry *e;
	if (like->kind == VN_LAYOUT_MATCH_NOTHING)
		return json_null();
	json_t *j = json_pack("{s:s, s:f, s:o}", "as", kinds[like->kind], "nmse", like->nmse, "words",
	                      vn_json_text(like->words));
	if (like->entry >= 0) {
		e = vn_recording_entry(like->kind == VN_LAYOUT_MATCH_OWN ? opened->cand : opened->ref, like->entry);
		json_object_set_new(j, "step", json_integer(e->step));
		json_object_set_new(j, "checkpoint", vn_json_text(e->name));
	}
	return j;
}

static json_t *profile_json(const vn_profile *p)
{
	enum { DRAWN = 1024 };
	json_t *axes = json_array();
	for (int i = 0; i < p->n_axes; i++) {
		const vn_axis_profile *a = &p->axis[i];
		const int64_t          run = (a->n + DRAWN - 1) / DRAWN;
		int64_t                bad = 0;
		for (int64_t k = 0; k < a->n; k++)
			bad += a->at[k].bad > 0;
		json_array_append_new(axes, json_pack("{s:o, s:I, s:I, s:I, s:o, s:o}", "axis", vn_json_text(a->name), "size",
		                                      (json_int_t)a->n, "indices_per_sum", (json_int_t)run, "not_finite",
		                                      (json_int_t)bad, "error", energies_json(a, false, run), "reference",
		                                      energies_json(a, true, run)));
	}
	return json_pack("{s:o, s:o}", "words", vn_json_lines(&p->words), "axes", axes);
}

json_t *vn_json_detail(const vn_opened *opened, const vn_result *result, const vn_detail *x)
{
	const vn_checkpoint *p = &result->checkpoints.of[x->checkpoint];
	const vn_entry      *r = vn_recording_entry(opened->ref, p->ref), *d = vn_recording_entry(opened->cand, p->cand);

	json_t *j = json_pack("{s:o, s:b, s:i, s:o, s:o, s:{s:o, s:o}, s:{s:I, s:o}, s:o, s:o, s:o}", "name",
	                      vn_json_name(p), "origin", (int)p->origin, "layer", p->layer, "point",
	                      vn_json_text(vn_point_of(p)), "op", vn_json_text(x->op), "worst_element", "index",
	                      vn_json_integers(x->at, r->shape.rank), "where", vn_json_text(x->where), "around", "from",
	                      (json_int_t)x->around_at, "where", vn_json_text(x->around_where), "reference",
	                      side_json(x, 0, r, p->m.ref_at), "candidate", side_json(x, 1, d, p->m.cand_at), "inputs",
	                      inputs_json(result, x));
	if (x->n_input < 0)
		json_object_set_new(j, "inputs_are",
		                    json_string(opened->plan || vn_recording_run_plan(opened->ref)
		                                    ? "the plan does not name this checkpoint"
		                                    : "neither recording holds a plan that names them"));
	json_object_set_new(j, "layout_match", layout_match_json(opened, &x->like));
	json_object_set_new(j, "profile", profile_json(&x->profile));
	return j;
}
