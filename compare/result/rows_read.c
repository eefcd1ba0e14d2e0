/* rows_read.c: reads a checkpoint from JSON, as rows.c writes it; see rows.h. */
#include "compare/result/rows.h"

#include "compare/comparison/checks.h"
#include "compare/judge/baseline.h"
#include "compare/judge/judge.h"
#include "compare/judge/unmeasured.h"

#include "libref/base/alloc.h"
#include "libref/base/intern.h"
#include "libref/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values: each notes the first key that is wrong ---------------------------------------- */

/* The checkpoint that is being read. */
typedef struct taken_row {
	const json_t *j;
	const char   *wrong; /* key; NULL: none yet */
} taken_row;

static void note_wrong(taken_row *x, const char *key)
{
	x->wrong = x->wrong ? x->wrong : key;
}

/* An integer in a range. optional: `otherwise` if the key is absent. */
static int64_t take_integer(taken_row *x, const json_t *o, const char *key, int64_t low, int64_t high)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v) || json_integer_value(v) < low || json_integer_value(v) > high)
		note_wrong(x, key);
	return json_is_integer(v) ? json_integer_value(v) : low;
}

static int64_t maybe_integer(taken_row *x, const json_t *o, const char *key, int64_t high, int64_t otherwise)
{
	return json_object_get(o, key) ? take_integer(x, o, key, 0, high) : otherwise;
}

static bool take_flag(taken_row *x, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_boolean(v))
		note_wrong(x, key);
	return json_is_true(v);
}

/* A text that lives as long as the program: many checkpoints share it. "" if it is absent. */
static const char *take_text(taken_row *x, const json_t *o, const char *key, bool optional)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v) && !(optional && (!v || json_is_null(v))))
		note_wrong(x, key);
	return vn_alloc_check(vn_intern(vn_document_text(v)));
}

static char *own_text(taken_row *x, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (v && !json_is_string(v))
		note_wrong(x, key);
	return json_is_string(v) ? vn_alloc_text(json_string_value(v)) : NULL;
}

/* A number, or null with a word that says which one it is. */
static double take_number(taken_row *x, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_number(v) && !json_is_null(v))
		note_wrong(x, key);
	return vn_document_number(o, key);
}

/* The index of a word among those that `word` gives. */
static int take_word(taken_row *x, const json_t *o, const char *key, const char *(*word)(int), int n)
{
	const char *text = vn_document_member(o, key);

	for (int i = 0; i < n; i++)
		if (strcmp(word(i), text) == 0)
			return i;
	note_wrong(x, key);
	return 0;
}

static const char *status_word(int i)
{
	return vn_checkpoint_status_text((vn_checkpoint_status)i);
}

static const char *since_word(int i)
{
	return vn_judge_since_text((vn_since)i);
}

static void take_shape(taken_row *x, vn_shape *s)
{
	const json_t *list = json_object_get(x->j, "shape"), *dim;
	const size_t  rank = json_array_size(list);
	size_t        i;
	int64_t       all = 1;

	if (!json_is_array(list) || rank > VN_MAX_RANK) {
		note_wrong(x, "shape");
		return;
	}
	s->rank = (int)rank;
	json_array_foreach(list, i, dim)
	{
		s->dim[i] = json_is_integer(dim) && json_integer_value(dim) > 0 ? json_integer_value(dim) : 0;
		if (!json_is_integer(dim) || json_integer_value(dim) < 0 || __builtin_mul_overflow(all, s->dim[i], &all))
			note_wrong(x, "shape");
	}
}

static void take_pair(taken_row *x, const char *key, int64_t pair[2])
{
	const json_t *list = json_object_get(x->j, key);

	if (json_array_size(list) != 2)
		note_wrong(x, key);
	for (size_t i = 0; i < 2; i++)
		pair[i] = json_integer_value(json_array_get(list, i));
}

/* ---- what was measured --------------------------------------------------------------------- */

/* Numbers by the names of metrics; those that are not finite are in `flags`. */
static void take_metrics(taken_row *x, const char *key, const char *flags, bool *has, double *value)
{
	const json_t *o = json_object_get(x->j, key), *words = json_object_get(x->j, flags);
	const char   *name;
	json_t       *v;
	vn_metric     m;

	if (!json_is_object(o))
		note_wrong(x, key);
	json_object_foreach((json_t *)(uintptr_t)o, name, v)
	{
		if (!vn_metric_from_name(name, &m) || !(json_is_number(v) || json_is_null(v))) {
			note_wrong(x, key);
			continue;
		}
		has[m] = true;
		value[m] = json_is_number(v) ? json_number_value(v) : vn_json_word_value(vn_document_member(words, name));
	}
}

static bool has_an_error(const vn_measured *m)
{
	for (int i = 0; i < VN_N_METRICS; i++)
		if (m->has[i] && vn_metric_get((vn_metric)i)->kind != VN_KIND_COUNT && !isnan(m->value[i]))
			return true;
	return false;
}

static void take_worst(taken_row *x, const vn_shape *shape, vn_measured *m)
{
	const json_t *o = json_object_get(x->j, "max_abs_at"), *index = json_object_get(o, "index");

	if (!o)
		return;
	if (json_array_size(index) != (size_t)shape->rank)
		note_wrong(x, "max_abs_at");
	m->at = 0;
	for (int i = 0; i < shape->rank; i++) {
		const json_int_t at = json_integer_value(json_array_get(index, (size_t)i));
		if (at < 0 || at >= shape->dim[i])
			note_wrong(x, "max_abs_at");
		else
			m->at = m->at * shape->dim[i] + at;
	}
	m->ref_at = json_number_value(json_object_get(o, "reference"));
	m->cand_at = json_number_value(json_object_get(o, "candidate"));
}

static void take_floor(taken_row *x, vn_checkpoint *p)
{
	bool has[VN_N_METRICS];

	p->has_floor = json_object_get(x->j, "floor") != NULL;
	if (!p->has_floor)
		return;
	p->floor = vn_alloc(VN_N_METRICS, sizeof *p->floor);
	for (int i = 0; i < VN_N_METRICS; i++)
		p->floor[i] = NAN;
	take_metrics(x, "floor", "floor_not_finite", has, p->floor);
}

static void take_measured(taken_row *x, const vn_shape *shape, vn_checkpoint *p)
{
	vn_measured *m = &p->m;
	const struct {
		const char *key;
		int64_t    *to;
	} index[] = { { "worst_token", &m->worst_token },
		          { "worst_nmse_token", &m->worst_nmse_token },
		          { "worst_nmse_channel", &m->worst_nmse_channel },
		          { "worst_scale_channel", &m->worst_scale_channel },
		          { "worst_row", &m->worst_row },
		          { "first_nonfinite", &m->bad_at } };

	take_metrics(x, "metrics", "metrics_not_finite", m->has, m->value);
	m->n = maybe_integer(x, x->j, "elements", INT64_MAX, 0);
	if (!m->n)
		return;
	m->finite = maybe_integer(x, x->j, "finite", m->n, has_an_error(m) ? m->n : 0);
	take_pair(x, "nan", m->nan);
	take_pair(x, "inf", m->inf);
	m->masked = maybe_integer(x, x->j, "masked", m->n, 0);
	for (size_t i = 0; i < sizeof index / sizeof *index; i++)
		*index[i].to = maybe_integer(x, x->j, index[i].key, INT64_MAX, -1);
	p->first_token = maybe_integer(x, x->j, "first_token", INT64_MAX / 2, 0);
	m->argmax_strict = json_number_value(json_object_get(x->j, "argmax_strict"));
	m->kl_half = json_object_get(x->j, "kl_mean_half") ? json_number_value(json_object_get(x->j, "kl_mean_half"))
	                                                   : (double)NAN;
	if (!vn_dtype_from_name(vn_document_member(x->j, "ulp_of"), &m->grid))
		note_wrong(x, "ulp_of");
	take_worst(x, shape, m);
	take_floor(x, p);
}

/* ---- limits -------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The rule of a limit, which many checkpoints share. */
static vn_rule *rule_of(vn_reading *r, const char *file, const char *match, int line)
{
	for (int i = 0; i < r->n_rules; i++)
		if (r->rule[i]->line == line && strcmp(r->rule[i]->file, file) == 0 && same_text(r->rule[i]->match, match))
			return r->rule[i];
	vn_rule *rule = vn_alloc_zero(1, sizeof *rule);
	r->rule = vn_alloc_grown(r->rule, (size_t)r->n_rules, sizeof *r->rule);
	*rule = (vn_rule) { .file = (char *)(uintptr_t)file, .match = (char *)(uintptr_t)match, .line = line };
	return r->rule[r->n_rules++] = rule; /* its texts are interned */
}

static void take_rule(vn_reading *r, taken_row *x, const json_t *limit, vn_check *k)
{
	const json_t *o = json_object_get(limit, "rule"), *depth = json_object_get(limit, "by_depth");

	if (!json_is_null(o) && (!json_is_object(o) || k->form == VN_OF_OPERATION)) /* which no rule sets */
		note_wrong(x, "rule");
	if (!json_is_object(o) || k->form == VN_OF_OPERATION)
		return;
	k->line = json_is_null(json_object_get(o, "line")) ? 0 : (int)take_integer(x, o, "line", 0, INT32_MAX);
	const char *match = take_text(x, o, "match", true);
	vn_rule    *rule = rule_of(r, take_text(x, o, "file", false), *match ? match : NULL, k->line);
	const char *why = take_text(x, o, "why", true);
	rule->why_of[k->form == VN_OVER_FLOOR][k->metric] = *why ? (char *)(uintptr_t)why : NULL;
	rule->key[k->form][k->metric].deep = depth != NULL;
	rule->key[k->form][k->metric].value = json_number_value(json_object_get(depth, "first"));
	rule->key[k->form][k->metric].last = json_number_value(json_object_get(depth, "last"));
	k->rule = rule;
}

static bool take_key(const char *text, vn_check *k)
{
	char key[VN_KEY_TEXT];

	for (int f = 0; f <= VN_OF_OPERATION; f++)
		for (int m = 0; m < VN_N_METRICS; m++)
			if (strcmp(vn_limit_key((vn_form)f, (vn_metric)m, key), text) == 0) {
				k->form = (vn_form)f;
				k->metric = (vn_metric)m;
				return true;
			}
	return false;
}

/* The words of a note are those of the checkpoint where they have a meaning of their own
 * (check_words.c). */
static const char *note_of(taken_row *x, const json_t *limit, vn_checkpoint *p)
{
	const char *note = take_text(x, limit, "note", true);

	if (!*note)
		return NULL;
	if (strcmp(note, vn_not_gathered) == 0)
		return vn_not_gathered;
	if (p->vacuous && strcmp(note, p->vacuous) == 0)
		return p->vacuous;
	p->invalid_floor = p->detail && strcmp(note, p->detail) == 0;
	return p->invalid_floor ? p->detail : note;
}

static vn_check take_limit(vn_reading *r, taken_row *x, const json_t *limit, vn_checkpoint *p)
{
	const json_t *value = json_object_get(limit, "value"), *best = json_object_get(limit, "best");
	vn_check      k = { .value = vn_json_word_value(vn_document_member(limit, "value_is")) };

	if (!take_key(vn_document_member(limit, "metric"), &k) || !json_is_number(json_object_get(limit, "limit")) ||
	    !(json_is_number(value) || json_is_null(value)) || (best && !json_is_number(best)))
		note_wrong(x, "limits");
	k.limit = json_number_value(json_object_get(limit, "limit"));
	k.value = json_is_number(value) ? json_number_value(value) : k.value;
	k.has_best = best != NULL;
	k.best = json_number_value(best);
	k.holds = take_flag(x, limit, "holds");
	k.steps = (int)maybe_integer(x, limit, "steps", INT32_MAX, 0);
	k.note = note_of(x, limit, p);
	take_rule(r, x, limit, &k);
	return k;
}

/* The broken check that is farthest outside; -1: none. */
static int worst_of(const vn_checkpoint *p)
{
	int    worst = -1;
	double most = 0;

	for (int i = 0; i < p->n_checks; i++) {
		const vn_check k = vn_check_at(p, i);
		const double   far = vn_check_limit_fraction(&k);
		if (!k.holds && (worst < 0 || far > most)) {
			worst = i;
			most = far;
		}
	}
	return worst;
}

static void take_limits(vn_reading *r, taken_row *x, vn_checkpoint *p)
{
	const json_t *list = json_object_get(x->j, "limits"), *limit;
	size_t        i;

	if (!json_is_array(list))
		note_wrong(x, "limits");
	json_array_foreach(list, i, limit)
	{
		const vn_check k = take_limit(r, x, limit, p);
		if (!x->wrong)
			vn_checks_add(&r->terms, p, &k);
	}
	p->worst = json_object_get(x->j, "broken") ? (int)take_integer(x, x->j, "broken", 0, (int64_t)p->n_checks - 1)
	           : p->fails                      ? worst_of(p)
	                                           : -1;
}

/* ---- replay -------------------------------------------------------------------------------- */

static void take_products(taken_row *x, const json_t *replay, vn_read_row *row)
{
	const json_t *list = json_object_get(replay, "gemm"), *o;
	size_t        i;

	if (!json_is_array(list) || json_array_size(list) > VN_MAX_GEMM) {
		note_wrong(x, "gemm");
		return;
	}
	json_array_foreach(list, i, o)
	{
		row->gemm[i] = (vn_gemm) {
			.of = take_text(x, o, "of", false),
			.m = take_integer(x, o, "m", 0, INT64_MAX),
			.n = take_integer(x, o, "n", 0, INT64_MAX),
			.k = take_integer(x, o, "k", 0, INT64_MAX),
			.transposed = take_flag(x, o, "b_transposed"),
			.lda = take_integer(x, o, "lda", 0, INT64_MAX),
			.ldb = take_integer(x, o, "ldb", 0, INT64_MAX),
			.ldc = take_integer(x, o, "ldc", 0, INT64_MAX),
			.batch = (int)take_integer(x, o, "heads", 0, INT32_MAX),
			.share = (int)take_integer(x, o, "heads_per_b", 0, INT32_MAX),
			.alpha = take_number(x, o, "alpha"),
		};
	}
	row->n_gemm = (int)json_array_size(list);
}

static vn_column_order take_columns(taken_row *x, const json_t *replay)
{
	const char *text = vn_document_member(replay, "columns");

	for (int i = VN_COLUMNS_SAME + 1; i < VN_N_COLUMNS; i++)
		if (strcmp(vn_columns_name((vn_column_order)i), text) == 0)
			return (vn_column_order)i;
	if (*text)
		note_wrong(x, "columns");
	return VN_COLUMNS_SAME;
}

/* Errors over their floors are what reports show: the floors of the worst token and element count
 * as 1. */
static void take_replay(taken_row *x, vn_checkpoint *p, vn_read_row *row)
{
	const json_t *o = json_object_get(x->j, "replay");

	if (!o)
		return;
	p->replayed = true;
	p->replay = (vn_replayed) {
		.local = take_number(x, o, "local"),
		.floor = take_number(x, o, "local_floor"),
		.inherited = take_number(x, o, "inherited"),
		.local_token = take_number(x, o, "worst_token_over_floor"),
		.floor_token = 1,
		.local_max = take_number(x, o, "max_abs_over_floor"),
		.floor_max = 1,
		.gain = take_number(x, o, "gain"),
		.bad = take_integer(x, o, "nonfinite", 0, INT64_MAX),
		.other_ids = json_object_get(o, "other_ids") ? take_integer(x, o, "other_ids", 0, INT64_MAX) : 0,
		.another_order = json_is_true(json_object_get(o, "another_order")),
		.slack = json_number_value(json_object_get(o, "slack")),
		.independent_numbers = take_integer(x, o, "independent_numbers", 0, INT64_MAX),
		.span = (int)take_integer(x, o, "span", 0, INT32_MAX),
		.charged_to = -1,
		.recorder_fault = take_flag(x, o, "recorder_fault"),
		.columns = take_columns(x, o),
		.wrong_in_order = take_flag(x, o, "wrong_in_order"),
	};
	row->fault_at = *take_text(x, o, "fault_at", true) ? take_text(x, o, "fault_at", true) : NULL;
	p->replay.not_measured = isnan(p->replay.local) != 0;
	row->replayed = own_text(x, o, "words");
	take_products(x, o, row);
}

static void take_overflow(taken_row *x, vn_overflow *v)
{
	const json_t *o = json_object_get(x->j, "overflow");

	if (!o)
		return;
	if (!vn_dtype_from_name(vn_document_member(o, "format"), &v->format))
		note_wrong(x, "overflow");
	v->largest = take_number(x, o, "largest");
	v->reached = take_number(x, o, "reached");
	if (!json_object_get(o, "term"))
		return;
	v->term = take_integer(x, o, "term", 0, INT64_MAX);
	v->terms = take_integer(x, o, "terms", 0, INT64_MAX);
	v->whole = take_number(x, o, "whole");
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void take_pool(vn_reading *r, taken_row *x, vn_checkpoint *p)
{
	p->pooled_small = -1;
	if (!json_object_get(x->j, "floor_of_steps"))
		return;
	r->pooled = vn_alloc_grown(r->pooled, (size_t)r->n_pooled, sizeof *r->pooled);
	r->pooled[r->n_pooled] = (vn_pooled_small) { .worst = -1 };
	r->pooled[r->n_pooled].floor[VN_M_NMSE] = take_number(x, x->j, "floor_of_steps");
	p->pooled_small = r->n_pooled++;
}

static void take_facts(taken_row *x, vn_checkpoint *p, vn_read_row *row)
{
	const char   *overwritten = take_text(x, x->j, "overwritten", true), *vacuous = take_text(x, x->j, "vacuous", true);
	const json_t *sides = json_object_get(x->j, "sides");

	p->name = take_text(x, x->j, "name", false);
	if (!*p->name || strlen(p->name) >= VN_NAME_MAX)
		note_wrong(x, "name");
	p->step = (int)take_integer(x, x->j, "step", 0, INT32_MAX);
	p->order = (int)take_integer(x, x->j, "order", -1, INT32_MAX);
	p->layer = (int)take_integer(x, x->j, "layer", -1, INT32_MAX);
	p->status = (vn_checkpoint_status)take_word(x, x->j, "status", status_word, VN_N_CHECKPOINT_STATUSES);
	p->fails = take_flag(x, x->j, "fails");
	p->origin = take_flag(x, x->j, "origin");
	if (json_object_get(x->j, "since"))
		p->since = (vn_since)take_word(x, x->j, "since", since_word, VN_N_SINCE);
	if (json_object_get(x->j, "was"))
		p->was = take_number(x, x->j, "was");
	p->detail = own_text(x, x->j, "detail");
	p->contents = own_text(x, x->j, "contents");
	p->overwritten = *overwritten ? overwritten : NULL;
	p->vacuous = *vacuous ? vacuous : NULL;
	p->not_run = json_is_true(json_object_get(json_array_get(sides, 1), "not_run"));
	if (vn_judge_is_unmeasured(p)) {
		if (json_array_size(sides) != 2)
			note_wrong(x, "sides");
		row->sides = json_incref((json_t *)(uintptr_t)sides);
	}
	row->about.op = take_text(x, x->j, "op", false);
	row->about.axes = take_text(x, x->j, "axes", false);
	take_shape(x, &row->about.shape);
}

vn_status vn_row_read(vn_reading *r, const json_t *j, vn_error *err)
{
	taken_row x = { .j = j };

	r->checkpoint = vn_alloc_grown(r->checkpoint, (size_t)r->n, sizeof *r->checkpoint);
	r->row = vn_alloc_grown(r->row, (size_t)r->n, sizeof *r->row);
	vn_checkpoint *p = &r->checkpoint[r->n];
	vn_read_row   *row = &r->row[r->n++];
	*p = (vn_checkpoint) { .value = -1,
		                   .ref = -1,
		                   .cand = -1,
		                   .pooled_logits = -1,
		                   .channels = -1,
		                   .m = vn_measured_none(),
		                   .worst = -1,
		                   .was = NAN };
	*row = (vn_read_row) { .n_gemm = 0 };
	take_facts(&x, p, row);
	take_measured(&x, &row->about.shape, p);
	take_replay(&x, p, row);
	take_overflow(&x, &p->overflow);
	take_limits(r, &x, p);
	take_pool(r, &x, p);
	return x.wrong ? vn_fail(err, VN_ERR_FORMAT,
	                         "%s: checkpoint %d: key %s is missing or not what it should be; expected the JSON report "
	                         "of a comparison (vernier compare -o NAME.json)",
	                         r->path, r->n, x.wrong)
	               : VN_OK;
}

/* ---- names ------------------------------------------------------------------------------ */

typedef struct row_name {
	const char *name;
	int         step, at;
} row_name;

VN_ORDER_BY(by_name, row_name, strcmp(x->name, y->name), VN_ORDER(x->step, y->step))

vn_status vn_reading_sort(vn_reading *r, vn_error *err)
{
	row_name *sorted = r->sorted = vn_alloc((size_t)r->n, sizeof *sorted);

	for (int i = 0; i < r->n; i++)
		sorted[i] = (row_name) { r->checkpoint[i].name, r->checkpoint[i].step, i };
	qsort(sorted, (size_t)r->n, sizeof *sorted, by_name);
	for (int i = 1; i < r->n; i++)
		if (by_name(&sorted[i - 1], &sorted[i]) == 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: a checkpoint is listed twice: %.127s", r->path, sorted[i].name);
	return VN_OK;
}

int vn_reading_find(const vn_reading *r, const char *name, int step)
{
	const row_name  key = { name, step, 0 };
	const row_name *at = bsearch(&key, r->sorted, (size_t)r->n, sizeof key, by_name);
	return at ? at->at : -1;
}

void vn_reading_free(vn_reading *r)
{
	if (!r)
		return;
	for (int i = 0; i < r->n; i++) {
		VN_FREE(r->checkpoint[i].check, r->checkpoint[i].detail, r->checkpoint[i].contents, r->checkpoint[i].floor,
		        r->row[i].replayed);
		json_decref(r->row[i].sides);
	}
	for (int i = 0; i < r->n_rules; i++)
		free(r->rule[i]);
	VN_FREE(r->rule, r->checkpoint, r->row, r->pooled, r->origin, r->sorted);
	vn_terms_free(&r->terms);
	free(r);
}
