/* report_json.c: a comparison for a program, schema vernier-compare/1.
 *
 * JSON has no NaN and no infinity: such a number is null, and a neighbour says
 * which of them it was ("nan", "inf", "-inf"). */
#include "compare/baseline.h"
#include "compare/report.h"

#include "libref/base/utf8.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A page has the numbers of so many checkpoints, and of all that fail; of others in short. */
enum { PAGE_HOLDS = 4000 };

static json_t *text(const char *s)
{
	json_t *j = json_string(s ? s : "");
	if (j)
		return j;
	char *clean = vn_utf8_escape(s, strlen(s)); /* JSON is UTF-8; a name that is none is said so */
	j = json_string(clean ? clean : "");
	free(clean);
	return j;
}

static json_t *name_of(const vn_checkpoint *p)
{
	char label[VN_LABEL];
	return text(vn_label(p, label));
}

static const char *not_finite(double x)
{
	return isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

/* object[key] = x; when it is none, null, and flags[key] says what it was. */
static void put_real(json_t *object, const char *key, double x, json_t *flags)
{
	json_object_set_new(object, key, isfinite(x) ? json_real(x) : json_null());
	if (!isfinite(x))
		json_object_set_new(flags, key, json_string(not_finite(x)));
}

static void put_flags(json_t *object, const char *key, json_t *flags)
{
	if (json_object_size(flags))
		json_object_set_new(object, key, flags);
	else
		json_decref(flags);
}

static json_t *integers(const int64_t *x, int n)
{
	json_t *a = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(a, json_integer(x[i]));
	return a;
}

static json_t *lines(const vn_lines *l)
{
	json_t *a = json_array();
	for (int i = 0; i < l->n; i++)
		json_array_append_new(a, text(l->line[i]));
	return a;
}

static json_t *rule(const vn_check *k)
{
	if (!k->rule)
		return json_null(); /* built in */
	return json_pack("{s:o, s:i, s:o, s:o}", "file", text(k->rule->file), "line", k->line,
	                 "match", k->rule->match ? text(k->rule->match) : json_null(),
	                 "why", k->rule->why ? text(k->rule->why) : json_null());
}

static json_t *used(const vn_check *k)
{
	char key[VN_KEY_TEXT];
	json_t *j = json_object();
	json_object_set_new(j, "metric", json_string(vn_limit_key(k->form, k->metric, key)));
	json_object_set_new(j, "used", isfinite(vn_check_used(k)) ? json_real(vn_check_used(k)) : json_null());
	return j;
}

static json_t *limit(const vn_check *k)
{
	json_t *j = used(k);
	json_object_set_new(j, "limit", json_real(k->limit));
	json_object_set_new(j, "value", isfinite(k->value) ? json_real(k->value) : json_null());
	if (!isfinite(k->value))
		json_object_set_new(j, "value_is", json_string(k->note ? "unknown" : not_finite(k->value)));
	json_object_set_new(j, "holds", json_boolean(k->holds));
	if (k->note)
		json_object_set_new(j, "note", json_string(k->note));
	if (k->steps)
		json_object_set_new(j, "steps", json_integer(k->steps));
	if (k->rule && k->rule->key[k->form][k->metric].deep)
		json_object_set_new(j, "by_depth", json_pack("{s:f, s:f}", "first", k->rule->key[k->form][k->metric].value,
		                                             "last", k->rule->key[k->form][k->metric].last));
	json_object_set_new(j, "rule", rule(k));
	return j;
}

/* Where max_abs is: the index in the tensor's axes, and both values. */
static json_t *worst_element(const vn_checkpoint *p, const vn_shape *s)
{
	int64_t at[VN_MAX_RANK], left = p->m.at;
	for (int i = s->rank - 1; i >= 0; i--) {
		at[i] = s->dim[i] ? left % s->dim[i] : 0;
		left = s->dim[i] ? left / s->dim[i] : 0;
	}
	return json_pack("{s:o, s:f, s:f}", "index", integers(at, s->rank), "reference", p->m.ref_at, "candidate", p->m.cand_at);
}

static void measured(json_t *j, const vn_checkpoint *p, const vn_shape *shape)
{
	json_t *m = json_object(), *f = json_object(), *m_flags = json_object(), *f_flags = json_object();
	for (int i = 0; i < VN_N_METRICS; i++) {
		const char *key = vn_metric_get((vn_metric)i)->name;
		if (p->m.has[i])
			put_real(m, key, p->m.value[i], m_flags);
		if (p->m.has[i] && p->has_floor)
			put_real(f, key, p->floor[i], f_flags);
	}
	json_object_set_new(j, "metrics", m);
	put_flags(j, "metrics_not_finite", m_flags);
	put_flags(j, "floor", f);
	put_flags(j, "floor_not_finite", f_flags);
	if (p->m.at >= 0 && isfinite(p->m.ref_at) && isfinite(p->m.cand_at))
		json_object_set_new(j, "max_abs_at", worst_element(p, shape));
	if (p->m.has[VN_M_ARGMAX_AGREEMENT])
		json_object_set_new(j, "argmax_strict", json_real(p->m.argmax_strict));
	if (p->m.has[VN_M_KL_MEAN] && isfinite(p->m.kl_half))
		json_object_set_new(j, "kl_mean_half", json_real(p->m.kl_half));
	json_object_set_new(j, "elements", json_integer(p->m.n));
	json_object_set_new(j, "nan", integers(p->m.nan, 2));
	json_object_set_new(j, "inf", integers(p->m.inf, 2));
	if (p->m.worst_token >= 0)
		json_object_set_new(j, "worst_token", json_integer(p->m.worst_token));
	if (p->m.worst_nmse_token >= 0)
		json_object_set_new(j, "worst_nmse_token", json_integer(p->m.worst_nmse_token));
	if (p->m.worst_row >= 0)
		json_object_set_new(j, "worst_row", json_integer(p->m.worst_row));
	json_object_set_new(j, "ulp_of", json_string(vn_dtype_name(p->m.grid)));
}

/* Healthy ones of a long decode: what a map and a curve need of them. */
static void shortened(json_t *j, const vn_checkpoint *p)
{
	json_t *m = json_object(), *f = json_object(), *flags = json_object();
	put_real(m, "nmse", p->m.value[VN_M_NMSE], flags);
	if (p->has_floor)
		put_real(f, "nmse", p->floor[VN_M_NMSE], flags);
	json_decref(flags);
	json_object_set_new(j, "metrics", m);
	put_flags(j, "floor", f);
	json_object_set_new(j, "elements", json_integer(p->m.n));
	json_object_set_new(j, "brief", json_true());
}

static json_t *checkpoint(const vn_comparison *c, const vn_checkpoint *p, bool brief)
{
	const vn_entry *e = vn_entry_of(c, p);
	json_t *j = json_object(), *l = json_array();
	json_object_set_new(j, "name", text(p->name));
	json_object_set_new(j, "step", json_integer(p->step));
	json_object_set_new(j, "order", json_integer(p->order));
	json_object_set_new(j, "layer", json_integer(p->layer));
	json_object_set_new(j, "point", text(vn_point_of(p)));
	json_object_set_new(j, "op", text(vn_op_of(c, p)));
	json_object_set_new(j, "shape", integers(e->shape.dim, e->shape.rank));
	json_object_set_new(j, "axes", text(vn_entry_axes(e)));
	json_object_set_new(j, "status", json_string(vn_status_text(p->status)));
	json_object_set_new(j, "fails", json_boolean(p->fails));
	json_object_set_new(j, "origin", json_boolean(p->origin));
	if (p->since > VN_UNCHANGED)
		json_object_set_new(j, "since", json_string(vn_since_text(p->since)));
	if (isfinite(p->was))
		json_object_set_new(j, "was", json_real(p->was));
	if (*p->detail)
		json_object_set_new(j, "detail", text(p->detail));
	if (brief)
		shortened(j, p);
	else if (p->m.n)
		measured(j, p, &e->shape);
	else
		json_object_set_new(j, "metrics", json_object());
	for (int i = 0; i < p->n_checks; i++)
		json_array_append_new(l, brief ? used(&p->check[i]) : limit(&p->check[i]));
	json_object_set_new(j, "limits", l);
	return j;
}

/* ---- decoding -------------------------------------------------------------------- */

static json_t *of_scores(const double *value)
{
	json_t *j = json_object(), *flags = json_object();
	for (int m = 0; m < VN_N_METRICS; m++)
		if (vn_metric_get((vn_metric)m)->scores)
			put_real(j, vn_metric_get((vn_metric)m)->name, value[m], flags);
	put_flags(j, "not_finite", flags);
	return j;
}

static json_t *pools(const vn_comparison *c)
{
	json_t *a = json_array();
	for (int i = 0; i < c->n_pools; i++) {
		const vn_pool *g = &c->pool[i];
		json_array_append_new(a, json_pack("{s:o, s:i, s:i, s:i, s:o, s:o, s:f, s:o, s:o}", "name", text(g->name), "steps", g->n,
		                                   "first", c->point[g->first].step, "last", c->point[g->last].step,
		                                   "metrics", of_scores(g->value),
		                                   "floor", isnan(g->floor[VN_M_KL_MEAN]) ? json_null() : of_scores(g->floor),
		                                   "argmax_strict", g->argmax_strict, "kl_mean_half",
		                                   isfinite(g->kl_half) ? json_real(g->kl_half) : json_null(),
		                                   "worst", name_of(&c->point[g->worst])));
	}
	return a;
}

/* ---- one divergence in full ---------------------------------------------------- */

static json_t *statistics(const vn_stats *s)
{
	json_t *j = json_object(), *flags = json_object();
	put_real(j, "min", s->min, flags);
	put_real(j, "max", s->max, flags);
	put_real(j, "mean", s->mean, flags);
	put_real(j, "rms", s->rms, flags);
	put_real(j, "absmax", s->absmax, flags);
	put_flags(j, "not_finite", flags);
	json_object_set_new(j, "nan", json_integer(s->nan));
	json_object_set_new(j, "inf", json_integer(s->inf));
	return j;
}

static json_t *side(const vn_told *d, int which, vn_dtype dtype, double at)
{
	json_t *j = json_object(), *first = json_array(), *flags = json_object();
	for (int i = 0; i < d->n_first; i++)
		json_array_append_new(first, isfinite(d->first[which][i]) ? json_real(d->first[which][i])
		                                                          : json_string(not_finite(d->first[which][i])));
	json_object_set_new(j, "dtype", json_string(vn_dtype_name(dtype)));
	put_real(j, "worst", at, flags);
	put_flags(j, "not_finite", flags);
	json_object_set_new(j, "first", first);
	json_object_set_new(j, "statistics", statistics(&d->stats[which]));
	return j;
}

static json_t *inputs(const vn_comparison *c, const vn_told *d)
{
	json_t *a = d->n_input < 0 ? json_null() : json_array();
	for (int i = 0; i < d->n_input; i++)
		json_array_append_new(a, json_pack("{s:o, s:s}", "name", name_of(&c->point[d->input[i]]), "status",
		                                   vn_status_text(c->point[d->input[i]].status)));
	return a;
}

/* Energies of a long axis are summed over equal runs of indices: a page is not drawn finer. */
static json_t *energies(const double *x, int64_t n, int64_t run)
{
	json_t *a = json_array();
	for (int64_t i = 0; i < n; i += run) {
		double sum = 0;
		for (int64_t j = i; j < i + run && j < n; j++)
			sum += x[j];
		json_array_append_new(a, isfinite(sum) ? json_real(sum) : json_string(not_finite(sum)));
	}
	return a;
}

static json_t *resembles(const vn_comparison *c, const vn_resemblance *like)
{
	static const char *const kinds[] = {
		[VN_LIKE_OTHER] = "other", [VN_LIKE_OWN] = "own", [VN_LIKE_PERMUTED] = "permuted", [VN_LIKE_SHIFTED] = "shifted",
		[VN_LIKE_REVERSED] = "reversed", [VN_LIKE_HEADS] = "heads",
	};
	const vn_entry *e;
	if (like->kind == VN_LIKE_NOTHING)
		return json_null();
	json_t *j = json_pack("{s:s, s:f, s:o}", "as", kinds[like->kind], "nmse", like->nmse, "words", text(like->words));
	if (like->entry >= 0) {
		e = vn_recording_entry(like->kind == VN_LIKE_OWN ? c->cand : c->ref, like->entry);
		json_object_set_new(j, "step", json_integer(e->step));
		json_object_set_new(j, "checkpoint", text(e->name));
	}
	return j;
}

static json_t *profile(const vn_profile *p)
{
	enum { DRAWN = 1024 };
	json_t *axes = json_array();
	for (int i = 0; i < p->n_axes; i++) {
		const vn_axis_profile *a = &p->axis[i];
		const int64_t run = (a->n + DRAWN - 1) / DRAWN;
		int64_t bad = 0;
		for (int64_t k = 0; k < a->n; k++)
			bad += a->bad[k] > 0;
		json_array_append_new(axes, json_pack("{s:o, s:I, s:I, s:I, s:o, s:o}", "axis", text(a->name), "size", (json_int_t)a->n,
		                                      "together", (json_int_t)run, "not_finite", (json_int_t)bad,
		                                      "error", energies(a->error, a->n, run), "reference", energies(a->ref, a->n, run)));
	}
	return json_pack("{s:o, s:o}", "words", lines(&p->words), "axes", axes);
}

static json_t *divergence(const vn_comparison *c, const vn_told *x)
{
	const vn_checkpoint *p = &c->point[x->point];
	const vn_entry *r = vn_recording_entry(c->ref, p->ref), *d = vn_recording_entry(c->cand, p->cand);
	json_t *j = json_object();
	json_object_set_new(j, "name", name_of(p));
	json_object_set_new(j, "origin", json_boolean(p->origin));
	json_object_set_new(j, "layer", json_integer(p->layer));
	json_object_set_new(j, "point", text(vn_point_of(p)));
	json_object_set_new(j, "op", text(vn_op_of(c, p)));
	json_object_set_new(j, "worst_element", json_pack("{s:o, s:o}", "index", integers(x->at, r->shape.rank),
	                                                  "where", text(x->where)));
	json_object_set_new(j, "reference", side(x, 0, r->dtype, p->m.ref_at));
	json_object_set_new(j, "candidate", side(x, 1, d->dtype, p->m.cand_at));
	json_object_set_new(j, "inputs", inputs(c, x));
	json_object_set_new(j, "resembles", resembles(c, &x->like));
	json_object_set_new(j, "profile", profile(&x->profile));
	return j;
}

static json_t *recording(const vn_recording *r)
{
	const vn_facts *f = vn_recording_run(r);
	json_t *j = json_object(), *run = json_object();
	for (int i = 0; i < f->n; i++) {
		json_t *key = text(f->fact[i].key);
		json_object_set_new(run, json_string_value(key), text(f->fact[i].value));
		json_decref(key);
	}
	const char *about[][2] = {
		{ "created", vn_recording_root(r, "created") }, { "tool", vn_recording_root(r, "tool") },
		{ "tool_version", vn_recording_root(r, "tool_version") }, { "family", vn_recording_family(r) },
		{ "weights", vn_recording_provenance(r) }, { "weights_format", vn_recording_format(r) },
	};
	json_object_set_new(j, "path", text(vn_recording_path(r)));
	for (size_t i = 0; i < sizeof about / sizeof *about; i++)
		if (about[i][1] && *about[i][1])
			json_object_set_new(j, about[i][0], text(about[i][1]));
	json_object_set_new(j, "tokens", json_integer(vn_recording_tokens(r, NULL, NULL)));
	json_object_set_new(j, "run", run);
	return j;
}

/* ---- the whole ------------------------------------------------------------------- */

static json_t *baseline(const vn_comparison *c)
{
	json_t *j = c->options->baseline ? json_object() : json_null();
	if (!c->options->baseline)
		return j;
	json_object_set_new(j, "file", text(c->options->baseline));
	for (int s = VN_FIXED; s < VN_N_SINCE; s++)
		json_object_set_new(j, vn_since_text((vn_since)s), json_integer(c->n_since[s]));
	return j;
}

/* What a later comparison asks before it takes this one for its baseline. */
static json_t *subject(const vn_comparison *c)
{
	vn_subject s;
	vn_error   err;
	if (vn_subject_of(c, &s, &err)) /* no memory: then it is no baseline */
		return json_null();
	json_t *j = json_object();
	for (int i = 0; i < VN_SUBJECTS; i++)
		json_object_set_new(j, vn_subject_key[i], text(s.value[i]));
	return j;
}

/* All but the checkpoints: what comes before them, and what behind. */
static json_t *head(const vn_comparison *c, const vn_report_options *o)
{
	json_t *j = json_object(), *origins = json_array();
	const int first = vn_first_failure(c);
	char summary[VN_WORDS];
	json_object_set_new(j, "schema", json_string("vernier-compare/1"));
	json_object_set_new(j, "verdict", json_string(!c->within ? "outside" : c->n_since[VN_KNOWN] + c->n_since[VN_BETTER] ? "known" : "within"));
	json_object_set_new(j, "summary", json_string(vn_say_counts(c, summary)));
	json_object_set_new(j, "first_divergence", first >= 0 ? name_of(&c->point[first]) : json_null());
	for (int i = 0; i < c->n_origins; i++)
		json_array_append_new(origins, name_of(&c->point[c->origins[i]]));
	json_object_set_new(j, "origins", origins);
	json_object_set_new(j, "localised", json_boolean(c->graph || c->first < 0));
	json_object_set_new(j, "reference", recording(c->ref));
	json_object_set_new(j, "candidate", recording(c->cand));
	json_object_set_new(j, "limits", json_pack("{s:o, s:o}", "file", text(c->limits->path), "chosen", text(o->limits_chosen)));
	json_object_set_new(j, "floor", *c->floor_from ? text(c->floor_from) : json_null());
	json_object_set_new(j, "baseline", baseline(c));
	json_object_set_new(j, "subject", subject(c));
	json_object_set_new(j, "notes", lines(&c->notes));
	json_object_set_new(j, "warnings", lines(&c->warnings));
	return j;
}

static json_t *tail(const vn_comparison *c, const vn_story *s)
{
	json_t *j = json_object(), *full = json_array();
	for (int i = 0; i < s->n; i++)
		json_array_append_new(full, divergence(c, &s->told[i]));
	json_object_set_new(j, "steps_together", pools(c));
	json_object_set_new(j, "divergences", full);
	json_object_set_new(j, "divergences_left_out", json_integer(s->left_out));
	return j;
}

/* Writes and frees it. */
static bool put(FILE *out, json_t *j, size_t flags)
{
	const bool good = j && json_dumpf(j, out, flags | JSON_ENCODE_ANY) == 0;
	json_decref(j);
	return good;
}

/* The members of an object, a line each, a comma behind every one but the last; frees it. */
static bool put_members(FILE *out, json_t *object, size_t flags)
{
	const char *key;
	json_t *value;
	size_t left = json_object_size(object);
	bool good = true;
	json_object_foreach(object, key, value) {
		fprintf(out, "\"%s\": ", key); /* one of ours */
		good = put(out, json_incref(value), flags) && good;
		fputs(--left ? ",\n" : "\n", out);
	}
	json_decref(object);
	return good;
}

/* A checkpoint is a line: a long decode has more of them than memory should hold. */
vn_status vn_report_json(const vn_comparison *c, const vn_story *s, const vn_report_options *o, FILE *out, vn_error *err)
{
	const size_t line = JSON_COMPACT | (o->page ? JSON_REAL_PRECISION(9) : JSON_REAL_PRECISION(17));
	const size_t flags = o->page ? line : JSON_INDENT(1) | JSON_REAL_PRECISION(17);
	bool good;

	fputs("{\n", out);
	good = put_members(out, head(c, o), flags);
	fputs(",\"checkpoints\": [", out);
	for (int i = 0; good && i < c->n_points; i++) {
		const bool brief = o->page && i >= PAGE_HOLDS && c->point[i].m.n && !c->point[i].fails;
		fputs(i ? ",\n" : "\n", out);
		good = put(out, checkpoint(c, &c->point[i], brief), line);
	}
	fputs("\n],\n", out);
	good = good && put_members(out, tail(c, s), flags);
	fputs("}\n", out);
	if (!good || ferror(out))
		return vn_fail(err, VN_ERR_IO, "the JSON report could not be written");
	return VN_OK;
}
