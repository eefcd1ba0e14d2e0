/* limits_use.c: see limits_use.h. */
#include "compare/limits/limits_use.h"

#include "capture/recording/recording.h"
#include "libref/base/alloc.h"
#include "libref/base/glob.h"
#include "libref/base/system.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

bool vn_rule_speaks(const vn_rule *r, vn_metric m, const char *name)
{
	return r->match || !vn_metric_get(m)->scores || strcmp(name, "logits") == 0;
}

/* Does a checkpoint of this name have the metrics of scores? */
static bool has_scores(const char *name)
{
	vn_point p;

	return vn_point_from_name(vn_name_in_layer(name), &p) && strcmp(vn_point_get(p)->basis, "vocab") == 0;
}

bool vn_rule_matches(const vn_rule *r, const char *name)
{
	return !r->match || vn_glob_match(r->match, name);
}

static vn_rule_use *use_of(const vn_limits_use *u, const vn_rule *r)
{
	int i = 0;
	while (i < u->limits->n_rules && u->limits->rule[i] != r)
		i++;
	assert(i < u->limits->n_rules);
	return &u->rule[i];
}

/* ---- names --------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void keep_name(void *name)
{
	(void)name; /* the recording's */
}

/* The names of a recording, each once, because later steps repeat them. */
static void take_names(vn_limits_use *u)
{
	const int n = vn_recording_count(u->recording);
	void     *seen = NULL;

	u->name = vn_alloc((size_t)n, sizeof *u->name);
	for (int i = 0; i < n; i++) {
		const char *name = vn_recording_entry(u->recording, i)->name;
		if (tfind(name, &seen, compare_names))
			continue;
		u->name[u->n++] = name;
		vn_alloc_check(tsearch(name, &seen, compare_names));
	}
	vn_tree_free(seen, keep_name);
}

/* ---- which holds ---------------------------------------------------------------- */

/* The last rule that sets this key for this name. */
static const vn_rule *last_word(const vn_limits *l, const char *name, vn_form f, vn_metric m)
{
	const vn_rule *last = NULL;
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < l->n_rules; i++)
			if ((l->rule[i]->match != NULL) == (pass == 1) && l->rule[i]->key[f][m].state != VN_UNSAID &&
			    vn_rule_matches(l->rule[i], name))
				last = l->rule[i];
	return last;
}

static void count_uses(vn_limits_use *u, int rule)
{
	const vn_rule *r = u->limits->rule[rule];
	for (int i = 0; i < u->n; i++) {
		if (!vn_rule_matches(r, u->name[i]))
			continue;
		u->rule[rule].matches++;
		for (int f = 0; f < VN_N_FORMS; f++)
			for (int m = 0; m < VN_N_METRICS; m++) {
				vn_key_use *k = &u->rule[rule].key[f][m];
				if (r->key[f][m].state != VN_SAID || !vn_rule_speaks(r, (vn_metric)m, u->name[i]))
					continue;
				const vn_rule *last = last_word(u->limits, u->name[i], (vn_form)f, (vn_metric)m);
				if (last == r)
					k->holds++;
				else if (!k->instead)
					k->instead = last;
			}
	}
}

/* ---- trying them on the tensors ---------------------------------------------------- */

/* Whether rounding changes the metric. A distance in units of the coarser format is 0 for values
 * rounded to it, and agreement of rows is not lost by rounding. For all others rounding to nearest
 * gives the smallest error that the format allows. */
static bool sees_rounding(vn_metric m)
{
	const vn_metric_kind kind = vn_metric_get(m)->kind;
	return kind != VN_KIND_ULPS && kind != VN_KIND_SHARE;
}

/* Whether the metric notices zeros, which are finite and far from the ends of every format. */
static bool sees_zeros(vn_metric m)
{
	const vn_metric_kind kind = vn_metric_get(m)->kind;
	return m != VN_M_NONFINITE && kind != VN_KIND_RANGE && kind != VN_KIND_SHARE;
}

static void try_limit(vn_limits_use *u, const vn_entry *e, const vn_limit *l, vn_form f, vn_metric m,
                      const vn_measured *rounded, const vn_measured *zeros)
{
	vn_key_use *k = &use_of(u, l->rule)->key[f][m];
	if (sees_zeros(m) && zeros->ref_rms > 0 && zeros->has[m]) {
		k->tensors++;
		k->zeros += vn_limit_holds(m, f, l->value, zeros->value[m]);
	} else if (m == VN_M_NONFINITE) { /* at most n of n numbers */
		k->tensors++;
		k->zeros += l->value >= (double)zeros->n;
	}
	if (rounded && !k->broken && sees_rounding(m) && rounded->has[m] &&
	    !vn_limit_holds(m, f, l->value, rounded->value[m])) {
		k->broken = e->name;
		k->value = vn_limit_subject(m, f, rounded->value[m]);
	}
}

/* Replaces t by the same numbers rounded to another format, or by zeros. */
static vn_status measure_pretended(const vn_tensor *t, const vn_dtype *as, bool zeros, int threads, const vn_entry *e,
                                   vn_measured *m, vn_error *err)
{
	const size_t     n = (size_t)vn_shape_count(&t->shape);
	vn_tensor        other = { .dtype = as ? *as : t->dtype, .shape = t->shape };
	VN_FREED void   *room = vn_alloc_zero(n, vn_dtype_size(other.dtype));
	VN_FREED double *wide = as && !zeros ? vn_alloc(n, sizeof *wide) : NULL;
	if (wide) {
		vn_to_f64(wide, t->data, t->dtype, n);
		vn_from_f64(room, *as, wide, n);
	}
	other.data = room;
	vn_job job = { .ref = *t, .cand = other, .axes = vn_entry_axes(e), .scores = has_scores(e->name), .bits = true };
	const vn_status st = vn_measure_many(&job, 1, threads, err);
	*m = job.m;
	return st;
}

static vn_status try_entry(vn_limits_use *u, int entry, const vn_dtype *as, int threads, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(u->recording, entry);
	vn_measured     rounded, zeros;
	vn_limit_set    set;
	vn_tensor       t;
	vn_status       st;
	const bool      narrower = as && vn_dtype_digits(*as) < vn_dtype_digits(e->dtype);

	if (vn_shape_count(&e->shape) == 0)
		return VN_OK;
	if (!(st = vn_entry_tensor(u->recording, entry, &t, err))) {
		st = measure_pretended(&t, narrower ? as : NULL, true, threads, e, &zeros, err);
		if (!st && narrower)
			st = measure_pretended(&t, as, false, threads, e, &rounded, err);
	}
	vn_recording_release(u->recording, entry);
	if (st)
		return st;
	vn_limits_for(u->limits, e->name, &set);
	for (int f = 0; f < VN_N_FORMS; f++)
		for (int m = 0; m < VN_N_METRICS; m++)
			if (f != VN_OVER_FLOOR && set.limit[f][m].rule)
				try_limit(u, e, &set.limit[f][m], (vn_form)f, (vn_metric)m, narrower ? &rounded : NULL, &zeros);
	return VN_OK;
}

/* ---- warnings ------------------------------------------------------------------------ */

static void doubt_key(vn_limits_use *u, const vn_rule *r, vn_form f, vn_metric m, const vn_key_use *k,
                      const vn_dtype *as)
{
	char      key[VN_KEY_TEXT];
	const int line = r->key[f][m].line;
	vn_limit_key(f, m, key);
	if (u->recording && !r->shipped && r->match && k->holds == 0 && k->instead)
		vn_lines_add(&u->warnings,
		             "%s:%d: %s applies nowhere: %s:%d overrides it for every checkpoint that '%s' matches", r->file,
		             line, key, k->instead->file, k->instead->key[f][m].line, r->match);
	if (m == VN_M_NONFINITE && !vn_limit_doubt(f, m, r->key[f][m].value)) {
		if (k->zeros > 0)
			vn_lines_add(
				&u->warnings,
				"%s:%d: %s: %g can never fail for %d of %d tensor%s where it applies: they have no more numbers than "
				"that",
				r->file, line, key, r->key[f][m].value, k->zeros, k->tensors, k->tensors == 1 ? "" : "s");
		else if (!u->recording && r->key[f][m].value > 0)
			vn_lines_add(
				&u->warnings,
				"%s:%d: %s: %g can never fail for a tensor with no more numbers than that; --recording REC shows where",
				r->file, line, key, r->key[f][m].value);
	} else if (k->tensors > 0 && k->zeros == k->tensors && !vn_limit_doubt(f, m, r->key[f][m].value)) {
		vn_lines_add(&u->warnings,
		             k->tensors == 1 ? "%s:%d: %s: %g lets a tensor of zeros pass, for the one tensor where it applies"
		                             : "%s:%d: %s: %g lets a tensor of zeros pass, for all %d tensors where it applies",
		             r->file, line, key, r->key[f][m].value, k->tensors);
	}
	if (k->broken)
		vn_lines_add(&u->warnings, "%s:%d: %s: %g cannot be met in %s: rounding to %s alone leaves %.*g%s", r->file,
		             line, key, r->key[f][m].value, k->broken, vn_dtype_name(*as),
		             vn_metric_get(m)->better == VN_HIGHER ? 9 : 2, k->value,
		             vn_metric_get(m)->better == VN_NEAR_ONE ? " from 1" : "");
}

static bool says_nothing(const vn_rule *r)
{
	for (int m = 0; m < VN_N_METRICS; m++)
		for (int f = 0; f < VN_N_FORMS; f++)
			if (r->key[f][m].state != VN_UNSAID)
				return false;
	for (int i = 0; i < VN_N_PERMISSIONS; i++)
		if (r->permission[i] >= 0)
			return false;
	return true;
}

static void find_doubts(vn_limits_use *u, const vn_dtype *as)
{
	for (int i = 0; i < u->limits->warnings.n; i++)
		vn_lines_add(&u->warnings, "%s", u->limits->warnings.line[i]);
	for (int i = 0; i < u->limits->n_rules; i++) {
		const vn_rule *r = u->limits->rule[i];
		if (u->recording && u->rule[i].matches == 0 && r->match && !r->shipped)
			vn_lines_add(&u->warnings, "%s:%d: '%s' matches no checkpoint of %s", r->file, r->line, r->match,
			             vn_recording_path(u->recording));
		if (!r->shipped && r->match && says_nothing(r))
			vn_lines_add(&u->warnings, "%s:%d: '%s' sets and allows nothing", r->file, r->line, r->match);
		for (int m = 0; m < VN_N_METRICS; m++)
			for (int f = 0; f < VN_N_FORMS; f++) {
				const vn_key_use *k = &u->rule[i].key[f][m];
				if (r->key[f][m].state != VN_SAID)
					continue;
				doubt_key(u, r, (vn_form)f, (vn_metric)m, k, as);
				for (int n = 0; n < u->n && vn_metric_get((vn_metric)m)->scores && r->match; n++)
					if (vn_rule_matches(r, u->name[n]) && !has_scores(u->name[n])) {
						vn_lines_add(&u->warnings, "%s:%d: %s never applies to %s: only logits have this metric",
						             r->file, r->key[f][m].line, vn_metric_get((vn_metric)m)->name, u->name[n]);
						break;
					}
			}
	}
}

/* ---- the whole -------------------------------------------------------------------------- */

vn_status vn_limits_use_of(vn_limits_use *u, const vn_dtype *as, int threads, vn_error *err)
{
	vn_status st = VN_OK;

	u->rule = vn_alloc_zero((size_t)u->limits->n_rules, sizeof *u->rule);
	if (u->recording) {
		take_names(u);
		const vn_plan *plan = vn_recording_plan(u->recording);
		u->limits->layers = plan ? vn_plan_last_layer(plan) + 1 : vn_recording_layers(u->recording);
	}
	for (int i = 0; i < u->limits->n_rules; i++)
		count_uses(u, i);
	for (int i = 0; !st && u->recording && i < vn_recording_count(u->recording); i++)
		st = try_entry(u, i, as, threads, err);
	if (!st)
		find_doubts(u, as);
	return st;
}

void vn_limits_use_free(vn_limits_use *u)
{
	free(u->rule);
	if (u->recording)
		free(u->name);
	vn_lines_free(&u->warnings);
}
