/* baseline.c: see baseline.h. */
#include "compare/judge/baseline.h"
#include "compare/judge/pool_channels.h"
#include "compare/judge/subject.h"
#include "compare/judge/unmeasured.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"

#include "libref/base/alloc.h"
#include "libref/base/json.h"
#include "libref/base/map.h"
#include "libref/base/order.h"
#include "libref/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES (1 << 30)

const char *vn_judge_since_text(vn_since s)
{
	static const char *const text[VN_N_SINCE] = {
		[VN_NO_BASELINE] = "", [VN_UNCHANGED] = "unchanged", [VN_KNOWN] = "known", [VN_BETTER] = "better",
		[VN_FIXED] = "fixed",  [VN_WORSE] = "worse",         [VN_NEW] = "new",
	};
	return text[s];
}

/* A checkpoint of the baseline report. */
typedef struct before {
	const char *name; /* the JSON's own */
	json_int_t  step;
	json_t     *j;
	bool        failed; /* it was outside its limits, known or new */
	bool        found;  /* compared now as well */
} before;

typedef struct baseline {
	const char *path;
	json_t     *root;
	before     *point; /* by name, then step */
	size_t      n;
} baseline;

/* ---- reading --------------------------------------------------------------------- */

#define TAKES "--baseline takes the JSON report of an earlier comparison (-o FILE.json)"

static vn_status refuse_baseline(const baseline *b, vn_error *err, const char *what)
{
	return vn_fail(err, VN_ERR_FORMAT, TAKES ": %s: %s", b->path, what);
}

/* Leaves of a checkpoint what is asked of it below: as read, it takes ten times its text. */
static json_t *shorten_point(json_t *j)
{
	static const char *const kept[] = { "name", "step", "status", "fails", "since", "sides" };
	json_t                  *less = vn_alloc_check(json_object()), *limits = json_object_get(j, "limits"), *l;
	json_t                  *metrics = json_object_get(j, "metrics");
	size_t                   i, n = 0;

	for (i = 0; i < sizeof kept / sizeof *kept; i++)
		json_object_set(less, kept[i], json_object_get(j, kept[i]));
	/* check_since takes a limit that held as one that is absent, unless other steps have it, too */
	if (json_is_array(limits)) {
		json_object_set_new(less, "limits", json_array());
		json_array_foreach(limits, i, l) if (json_is_false(json_object_get(l, "holds")) ||
		                                     json_integer_value(json_object_get(l, "steps")))
		{
			json_array_append(json_object_get(less, "limits"), l);
			n++;
		}
	}
	if (n)
		json_object_set(less, "metrics", metrics);
	else {
		json_object_set_new(less, "metrics", json_object());
		json_object_set(json_object_get(less, "metrics"), "nmse", json_object_get(metrics, "nmse"));
	}
	json_decref(j);
	return less;
}

/* Reads the checkpoints, one at a time. */
static vn_status read_points(json_t *root, vn_json_members *m, json_error_t *why)
{
	json_t *all = vn_alloc_check(json_array()), *j;
	bool    begun = false;

	json_object_set_new(root, "checkpoints", all);
	while (vn_json_element(m, &begun, &j, why))
		json_array_append_new(all, shorten_point(j));
	return *why->text ? VN_ERR_FORMAT : VN_OK;
}

/* Reads what a baseline must have of a report. The rest is as large as the report. */
static vn_status read_members(baseline *b, const char *text, size_t bytes, vn_error *err)
{
	vn_json_members m = { .text = text, .bytes = bytes };
	json_error_t    why;
	json_t         *name, *value;
	vn_status       st = VN_OK;

	b->root = vn_alloc_check(json_object());
	while (!st && vn_json_key(&m, &name, &why)) {
		const char *key = json_string_value(name);
		const bool  kept = strcmp(key, "schema") == 0 || strcmp(key, "subject") == 0;
		const bool  list = strcmp(key, "checkpoints") == 0 && m.at < m.bytes &&
		                  text[m.at + strspn(text + m.at, " \t\r\n")] == '[';
		if ((kept || list) && json_object_get(b->root, key))
			st = refuse_baseline(b, err, kept ? "key schema or subject comes twice" : "key checkpoints comes twice");
		else if (list)
			st = read_points(b->root, &m, &why);
		else if (!(value = vn_json_value(&m, &why)))
			st = VN_ERR_FORMAT;
		else if (kept)
			json_object_set_new(b->root, key, value);
		else
			json_decref(value);
		json_decref(name);
	}
	const char first = *why.text ? text[strspn(text, " \t\r\n")] : '{';
	if (first != '{' && first) { /* a list or a number is JSON, too */
		json_error_t     none;
		VN_OWNED json_t *other = vn_json_load(text, bytes, JSON_DECODE_ANY, &none);
		if (other)
			return refuse_baseline(b, err, "not the JSON report of a comparison");
	}
	return *why.text ? vn_fail(err, VN_ERR_FORMAT, TAKES ": %s: not JSON, behind byte %d: %.120s", b->path,
	                           why.position, why.text)
	                 : st;
}

static vn_status load_baseline(baseline *b, vn_error *err)
{
	struct stat s;
	char       *text;
	size_t      bytes;
	if (stat(b->path, &s) == 0 && (!S_ISREG(s.st_mode) || s.st_size > FILE_MAX_BYTES))
		return refuse_baseline(b, err, S_ISREG(s.st_mode) ? "larger than any report" : "not a regular file");
	if (stat(b->path, &s) == 0 && s.st_size == 0)
		return refuse_baseline(b, err, "is empty");
	vn_status st = vn_read_text(b->path, FILE_MAX_BYTES, &text, &bytes, err);
	if (st)
		return vn_context(err, st, TAKES);
	st = read_members(b, text, bytes, err);
	free(text);
	if (st)
		return st;
	const char *schema = json_string_value(json_object_get(b->root, "schema"));
	/* What is read here has the same names in both versions. */
	if (!schema || (strcmp(schema, "vernier-compare/3") != 0 && strcmp(schema, "vernier-compare/2") != 0))
		return refuse_baseline(b, err, "its schema is neither vernier-compare/3 nor vernier-compare/2");
	if (!json_is_array(json_object_get(b->root, "checkpoints")))
		return refuse_baseline(b, err, "no checkpoints in it");
	return json_is_object(json_object_get(b->root, "subject"))
	           ? VN_OK
	           : refuse_baseline(
					 b, err, "it does not name its model, tokens and limits (key subject); an older version wrote it");
}

VN_ORDER_BY(compare_points, before, strcmp(x->name, y->name), VN_ORDER(x->step, y->step))

static vn_status index_points(baseline *b, vn_error *err)
{
	const json_t *all = json_object_get(b->root, "checkpoints");
	b->n = json_array_size(all);
	b->point = vn_alloc_zero(b->n, sizeof *b->point);
	for (size_t i = 0; i < b->n; i++) {
		json_t       *j = json_array_get(all, i);
		const json_t *step = json_object_get(j, "step"), *fails = json_object_get(j, "fails");
		const char   *name = json_string_value(json_object_get(j, "name")),
				   *since = json_string_value(json_object_get(j, "since"));
		if (!name || !json_is_integer(step) || !json_is_boolean(fails) ||
		    !json_is_string(json_object_get(j, "status")) || !json_is_array(json_object_get(j, "limits")))
			return refuse_baseline(b, err, "a checkpoint lacks name, step, status, fails or limits");
		b->point[i] = (before) {
			.name = name,
			.step = json_integer_value(step),
			.j = j,
			.failed = json_is_true(fails) || (since && (strcmp(since, "known") == 0 || strcmp(since, "better") == 0)),
		};
	}
	qsort(b->point, b->n, sizeof *b->point, compare_points);
	for (size_t i = 1; i < b->n; i++)
		if (compare_points(&b->point[i - 1], &b->point[i]) == 0)
			return refuse_baseline(b, err, "a checkpoint is listed twice");
	return VN_OK;
}

/* NULL: the baseline does not have it. */
static before *find_before(const baseline *b, const vn_checkpoint *c)
{
	VN_OWNED json_t *name = vn_alloc_check(vn_json_text(c->name)); /* as reports write it */
	const before     key = { .name = json_string_value(name), .step = c->step };
	before          *p = bsearch(&key, b->point, b->n, sizeof key, compare_points);
	return p;
}

/* ---- is it of this? ---------------------------------------------------------------- */

static vn_status same_subject(const vn_opened *o, const baseline *b, vn_error *err)
{
	vn_subject    now;
	const json_t *then = json_object_get(b->root, "subject");
	vn_subject_of(o, &now);
	char text[VN_ERROR_MAX / 2] = "";
	for (int i = 0; i < VN_SUBJECTS; i++) {
		const char *was = json_string_value(json_object_get(then, vn_subject_key[i]));
		const bool  digest = was && strlen(was) == VN_DIGEST_TEXT - 1;
		if (was && strcmp(was, now.value[i]) == 0)
			continue;
		vn_text_add(text, sizeof text, "%s%s", *text ? ", " : "", vn_subject_key[i]);
		if (was && !digest && strlen(now.value[i]) < VN_DIGEST_TEXT - 1)
			vn_text_add(text, sizeof text, " ('%.20s' there, '%.20s' here)", was, now.value[i]);
	}
	return *text ? vn_fail(err, VN_ERR_MISMATCH,
	                       "%s is not a baseline for this comparison, which differs in %.400s: compare under "
	                       "the same conditions, or make a new baseline",
	                       b->path, text)
	             : VN_OK;
}

/* ---- one checkpoint ------------------------------------------------------------------ */

/* The distance of a value from that of a perfect match. */
static double badness_of(vn_metric m, vn_form form, double value)
{
	return form != VN_OVER_FLOOR && vn_metric_get(m)->better == VN_HIGHER ? 1 - value : value;
}

/* The same limit in a checkpoint of the baseline: same rule, same number of steps; NULL if absent.
 * Channel limits may have any number of steps, because steps that are wrong as a whole are left
 * out of them. */
static json_t *limit_in(const before *p, const vn_check *k)
{
	const json_t *all = json_object_get(p->j, "limits");
	char          key[VN_KEY_TEXT];
	size_t        i;
	json_t       *l;
	vn_limit_key(k->form, k->metric, key);
	json_array_foreach(all, i, l)
	{
		const char      *metric = json_string_value(json_object_get(l, "metric"));
		const json_t    *limit = json_object_get(l, "limit"), *rule = json_object_get(l, "rule");
		const int        line = json_is_object(rule) ? (int)json_integer_value(json_object_get(rule, "line")) : 0;
		const json_int_t steps = json_integer_value(json_object_get(l, "steps"));
		if (metric && strcmp(metric, key) == 0 && json_is_number(limit) && json_number_value(limit) == k->limit &&
		    line == k->line && (steps == k->steps || (steps && k->steps && vn_channel_metric(k->metric) >= 0)))
			return l;
	}
	return NULL;
}

/* For steps judged together, the baseline may have charged another step. */
static json_t *limit_before(const baseline *b, const before *p, const vn_check *k)
{
	json_t *l = limit_in(p, k);
	if (l || !k->steps)
		return l;
	size_t from = (size_t)(p - b->point), to = from;
	while (from > 0 && strcmp(b->point[from - 1].name, p->name) == 0)
		from--;
	for (to = from; !l && to < b->n && strcmp(b->point[to].name, p->name) == 0; to++)
		l = limit_in(&b->point[to], k);
	return l;
}

static vn_since check_since(const baseline *b, const before *p, vn_check *k, double *was)
{
	const json_t *l = limit_before(b, p, k), *value = json_object_get(l, "value"), *best = json_object_get(l, "best");
	const char   *none = json_string_value(json_object_get(l, "value_is"));
	*was = (double)NAN;
	if (!l || !json_is_false(json_object_get(l, "holds")))
		return VN_NEW;
	if (!json_is_number(value)) {
		const char *now = k->note ? "unknown" : isnan(k->value) ? "nan" : k->value > 0 ? "inf" : "-inf";
		const bool number = none && (strcmp(none, "nan") == 0 || strcmp(none, "inf") == 0 || strcmp(none, "-inf") == 0);
		return !json_is_null(value) || !none                   ? VN_NEW
		       : number && isfinite(k->value)                  ? VN_BETTER
		       : strcmp(none, now) == 0 && !isfinite(k->value) ? VN_KNOWN
		                                                       : VN_WORSE;
	}
	*was = json_number_value(value);
	/* Reports may be chained, each 1 % worse than the last, so the comparison uses the best
	 * value ever recorded. */
	const double least = json_is_number(best) ? json_number_value(best) : *was;
	const bool   count = vn_metric_get(k->metric)->kind == VN_KIND_COUNT;
	const double room = count ? 0.0 : VN_BASELINE_ROOM;
	const double then = badness_of(k->metric, k->form, least), now = badness_of(k->metric, k->form, k->value);
	k->has_best = isfinite(k->value) != 0;
	k->best = now < then ? k->value : least;
	if (now <= then * (1 - room) && now < then)
		return VN_BETTER;
	return now <= then * (1 + room) ? VN_KNOWN : VN_WORSE;
}

/* Whether the steps of its channel pool are on average no worse than they were. The factor beyond
 * chance grows when the steps are more alike, and the worst channel changes with the number of
 * steps that are wrong as a whole. */
static bool steps_are_no_worse(const vn_checkpoints *all, const baseline *b, const vn_checkpoint *k)
{
	double now = 0, then = 0;
	for (int i = 0; i < all->n; i++) {
		const before *p = all->of[i].channels == k->channels ? find_before(b, &all->of[i]) : NULL;
		if (!p)
			continue;
		now += all->of[i].m.value[VN_M_NMSE];
		then += json_number_value(json_object_get(json_object_get(p->j, "metrics"), "nmse"));
	}
	return now <= then * (1 + VN_BASELINE_ROOM);
}

/* Whether k is farther beyond its limit than the check that counts as the worst. */
static bool is_farther(const vn_checkpoint *c, const vn_check *k)
{
	const vn_check worst = vn_check_at(c, c->worst);
	return vn_check_limit_fraction(k) > vn_check_limit_fraction(&worst);
}

/* The worst of its broken limits decides; among equals, the one farthest beyond its limit. */
static vn_since measured_since(vn_checkpoints *all, const vn_pools *pools, const baseline *b, const before *p,
                               vn_checkpoint *c)
{
	vn_since worst = VN_NO_BASELINE;
	for (int i = 0; i < c->n_checks; i++) {
		vn_check k = vn_check_at(c, i);
		double   was;
		if (k.holds)
			continue;
		vn_since s = check_since(b, p, &k, &was);
		vn_checks_set(&all->terms, c, i, &k);
		if (s == VN_WORSE && vn_channel_steps(all, pools, c, k.metric) && steps_are_no_worse(all, b, c))
			s = VN_KNOWN;
		if (s > worst || (s == worst && is_farther(c, &k))) {
			worst = s;
			c->was = was;
			c->worst = i;
		}
	}
	return worst;
}

/* Whether the steps judged together got worse while this one, which is not the farthest
 * of them, did not. */
static bool others_are_worse(const vn_checkpoints *all, const vn_pools *pools, const before *p, const vn_checkpoint *k)
{
	if (!p || k->since != VN_WORSE || k->worst < 0)
		return false;
	const vn_check broken = vn_check_at(k, k->worst);
	if (!broken.steps || vn_channel_steps(all, pools, k, broken.metric))
		return false;
	const bool    scores = vn_metric_get(broken.metric)->scores;
	const int     worst = scores && k->pooled_logits >= 0   ? pools->pooled_logits[k->pooled_logits].worst
	                      : !scores && k->pooled_small >= 0 ? pools->pooled_small[k->pooled_small].worst
	                                                        : -1;
	const json_t *was = json_object_get(json_object_get(p->j, "metrics"), vn_metric_get(broken.metric)->name);
	if (!p->failed || worst < 0 || &all->of[worst] == k || !json_is_number(was))
		return false;
	const vn_form form = VN_PLAIN; /* relative to its own value, not the floor */
	return badness_of(broken.metric, form, k->m.value[broken.metric]) <=
	       badness_of(broken.metric, form, json_number_value(was)) * (1 + VN_BASELINE_ROOM);
}

/* Is a tensor that the candidate's run left out no farther off than in the baseline? Its digest
 * says only whether any number changed. Both must have been measured in the same way. */
static bool is_no_farther(const json_t *then, const json_t *now)
{
	json_t     *was = json_object_get(then, "measured"), *is = json_object_get(now, "measured"), *value;
	const char *name;

	if (!json_equal(json_object_get(then, "dtype"), json_object_get(now, "dtype")) ||
	    !json_equal(json_object_get(then, "shape"), json_object_get(now, "shape")) || json_object_size(is) == 0 ||
	    json_object_size(is) != json_object_size(was))
		return false;
	json_object_foreach(is, name, value)
	{
		const json_t *old = json_object_get(was, name);
		vn_metric     m;
		if (!vn_metric_from_name(name, &m))
			continue;
		const double room = vn_metric_get(m)->kind == VN_KIND_COUNT ? 0.0 : VN_BASELINE_ROOM;
		if (!json_is_number(old) || !(badness_of(m, VN_PLAIN, json_number_value(value)) <=
		                              badness_of(m, VN_PLAIN, json_number_value(old)) * (1 + room)))
			return false;
	}
	return true;
}

static bool same_sides(const json_t *then, const json_t *now)
{
	const json_t *a = json_array_get(then, 1), *b = json_array_get(now, 1);
	const char   *x = json_string_value(json_object_get(a, "left_out")),
			   *y = json_string_value(json_object_get(b, "left_out"));

	if (!x || !y)
		return json_equal(then, now);
	return json_equal(json_array_get(then, 0), json_array_get(now, 0)) && (strcmp(x, y) == 0 || is_no_farther(a, b));
}

/* Was a checkpoint unmeasured in the baseline for the same cause as now? An old report without
 * `sides` has no cause as data: the checkpoint counts as worse until there is a new baseline. */
static bool is_still_so(const vn_opened *o, const before *p, const vn_checkpoint *c)
{
	VN_OWNED json_t *now = vn_unmeasured_sides(o, c);
	const bool       same = same_sides(json_object_get(p->j, "sides"), now);

	return same;
}

static vn_since find_since(const vn_opened *o, vn_checkpoints *all, const vn_pools *pools, const baseline *b,
                           const before *p, vn_checkpoint *c)
{
	if (!c->fails || !p)
		return c->fails ? VN_NEW : VN_UNCHANGED;
	const char *status = json_string_value(json_object_get(p->j, "status"));
	if (c->status == VN_OUTSIDE)
		return measured_since(all, pools, b, p, c);
	if (!p->failed || strcmp(status, vn_checkpoint_status_text(c->status)) != 0)
		return VN_NEW;
	return is_still_so(o, p, c) ? VN_KNOWN : VN_WORSE;
}

/* ---- all of them ----------------------------------------------------------------------- */

/* Fails when a checkpoint of the baseline is missing here. Checkpoints new in this
 * comparison are allowed. */
static vn_status all_found(const baseline *b, vn_error *err)
{
	const before *first = NULL;
	int           n = 0;
	for (size_t i = 0; i < b->n; i++) {
		const char *status = json_string_value(json_object_get(b->point[i].j, "status"));
		if (b->point[i].found || strcmp(status, vn_checkpoint_status_text(VN_EXTRA)) == 0)
			continue;
		first = first ? first : &b->point[i];
		n++;
	}
	return first
	           ? vn_fail(err, VN_ERR_MISMATCH, "%d checkpoint%s of the baseline %s %s not compared now (first: %.127s)",
	                     n, n == 1 ? "" : "s", b->path, n == 1 ? "is" : "are", first->name)
	           : VN_OK;
}

static vn_status apply_baseline(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, int *n_since, baseline *b,
                                vn_error *err)
{
	for (int i = 0; i < all->n; i++) {
		vn_checkpoint *k = &all->of[i];
		before        *p = find_before(b, k);
		if (p)
			p->found = true;
		k->since = find_since(o, all, pools, b, p, k);
		if (others_are_worse(all, pools, p, k))
			k->since = VN_KNOWN;
		/* A step charged with the errors of other steps may have been excused in the baseline. */
		const bool good = k->status == VN_WITHIN || k->status == VN_UNLIMITED || k->status == VN_AGREED ||
		                  k->status == VN_EQUAL;
		if (k->since == VN_UNCHANGED && p && p->failed && good && k->pooled_small < 0 && k->pooled_logits < 0 &&
		    !(k->channels >= 0 && pools->channel_pool[k->channels].outside))
			k->since = VN_FIXED;
		n_since[k->since]++;
	}
	for (int i = 0; i < all->n; i++) {
		vn_checkpoint *k = &all->of[i];
		if (k->since != VN_KNOWN && k->since != VN_BETTER)
			continue;
		k->fails = false;
		if (k->pooled_small >= 0)
			pools->pooled_small[k->pooled_small].outside = false;
		if (k->channels >= 0 && vn_channel_steps(all, pools, k, vn_check_at(k, k->worst).metric))
			pools->channel_pool[k->channels].outside = false;
	}
	return all_found(b, err);
}

vn_status vn_baseline_apply(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, int *n_since, vn_error *err)
{
	baseline  b = { .path = o->request.options->baseline };
	vn_status st;
	if (!b.path)
		return VN_OK;
	if (!(st = load_baseline(&b, err)) && !(st = same_subject(o, &b, err)) && !(st = index_points(&b, err)))
		st = apply_baseline(o, all, pools, n_since, &b, err);
	free(b.point);
	json_decref(b.root);
	return st;
}
