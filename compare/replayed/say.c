/* say.c: what a replay file and its results say, in notes: see judge_results.h. */
#include "compare/replayed/judge_results.h"

#include "compare/replayed/variants.h"
#include "compare/text/places.h"
#include "libref/base/alloc.h"
#include "libref/base/text.h"
#include "libref/base/json.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED = 6, WORDS = 480 };

static void say_by_whom(const vn_opened *o, vn_lines *notes, const vn_replayed_findings *j)
{
	const vn_replayed_file *f = o->replayed;
	const char             *tool = vn_facts_get(vn_recording_run(f->recording), "tool");
	int                     n = 0;

	for (int i = 0; i < j->n; i++)
		n += j->of[i].checkpoint >= 0;
	vn_lines_add(notes, "replay: %s computed %d results from the candidate's own tensors, not vernier (%s)",
	             tool ? tool : "PyTorch", n, vn_recording_shown(f->recording));
}

/* The names of a line of JSON, by reason. */
typedef struct reason {
	const char    *why;
	vn_name_places places;
	int            n;
} reason;

/* "replay: 62 results were not judged: other shape 22 (...), not aligned 40 (...)" */
static void say_unjudged(const vn_opened *o, vn_lines *notes)
{
	enum { REASONS = 8 };
	const vn_recording_lines *lines = vn_recording_replayed(o->replayed->recording, VN_REPLAYED_UNJUDGED);
	reason                    of[REASONS] = { { .why = NULL } };
	json_t                   *kept[REASONS] = { NULL };
	char                      text[VN_LINE_MAX] = "", places[WORDS];
	int                       n = 0, all = 0;

	for (int i = 0; i < lines->n; i++) {
		VN_OWNED json_t *j = vn_json_parse(lines->line[i], 0);
		const char      *why = json_string_value(vn_json_field(j, "why"));
		const char      *name = json_string_value(vn_json_field(j, "name"));
		int              k = 0;
		why = why ? why : "no reason";
		while (k < n && strcmp(of[k].why, why) != 0)
			k++;
		if (k == n && n < REASONS) {
			kept[n] = json_incref(j);
			of[n++].why = why;
		}
		if (k < n && name)
			vn_places_add(&of[k].places, name); /* the first name is not kept: only places are said */
		if (k < n)
			of[k].n++;
		all++;
	}
	for (int k = 0; k < n; k++) {
		for (int i = 0; i < of[k].places.n; i++)
			of[k].places.of[i].first = of[k].places.of[i].place;
		vn_text_add(text, sizeof text, "%s%.60s %d (%s)", k ? "; " : "", of[k].why, of[k].n,
		            vn_places_say(&of[k].places, NAMED, places, sizeof places));
		vn_places_free(&of[k].places);
	}
	for (int k = 0; k < n; k++)
		json_decref(kept[k]);
	if (all)
		vn_lines_add(notes, "replay: %d result%s of the candidate %s not judged alone: %s", all, all == 1 ? "" : "s",
		             all == 1 ? "is" : "are", text);
}

static const char *value_of(const json_t *j, const char *key, char text[80])
{
	VN_FREED char *s = vn_json_dump(json_object_get(j, key),
	                                JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(12));

	snprintf(text, 80, "%.60s", s ? s : "absent");
	return text;
}

/* Settings that differ in the same way, one line for all their places. */
typedef struct said_setting {
	char           what[320];
	vn_name_places places;
} said_setting;

enum { SETTINGS = 16 };

/* number: how many weights differ up to this one */
static void say_weight(vn_lines *notes, const char *weight, const json_t *line, int number)
{
	const char *cand = json_string_value(vn_json_field(line, "candidate")),
			   *ref = json_string_value(vn_json_field(line, "reference"));
	if (number <= SETTINGS)
		vn_lines_add(notes, "weights: %.127s: in the model's files the candidate's is %.255s, the reference's %.255s",
		             weight, cand ? cand : "?", ref ? ref : "?");
	else if (number == SETTINGS + 1)
		vn_lines_add(notes, "weights: more differ");
}

static void say_settings(const vn_opened *o, vn_lines *notes)
{
	const vn_recording_lines *lines = vn_recording_replayed(o->replayed->recording, VN_REPLAYED_SETTINGS);
	said_setting              of[SETTINGS] = { { "", { 0 } } };
	char                      what[320], ref[80], cand[80], places[WORDS];
	int                       n = 0, more = 0, weights = 0;

	for (int i = 0; i < lines->n; i++) {
		json_t     *j = vn_json_parse(lines->line[i], 0);
		const char *weight = json_string_value(vn_json_field(j, "weight"));
		if (weight) {
			say_weight(notes, weight, j, ++weights);
			json_decref(j);
			continue;
		}
		const char *name = json_string_value(vn_json_field(j, "name")),
				   *key = json_string_value(vn_json_field(j, "key"));
		int        k = 0;
		const bool argument = key && isdigit((unsigned char)*key); /* one without a name */
		snprintf(what, sizeof what, "%s%.60s is %s in the reference, %s in the candidate", argument ? "argument " : "",
		         key ? key : "a setting", value_of(j, "reference", ref), value_of(j, "candidate", cand));
		while (k < n && strcmp(of[k].what, what) != 0)
			k++;
		if (k == n && n < SETTINGS)
			memcpy(of[n++].what, what, sizeof what);
		if (k < n)
			vn_places_add(&of[k].places, name ? name : "");
		more += k == n;
		json_decref(j);
	}
	for (int k = 0; k < n; k++) {
		for (int i = 0; i < of[k].places.n; i++)
			of[k].places.of[i].first = of[k].places.of[i].place;
		vn_lines_add(notes, "settings: %s: %s", of[k].what, vn_places_say(&of[k].places, NAMED, places, sizeof places));
		vn_places_free(&of[k].places);
	}
	if (more)
		vn_lines_add(notes, "settings: %d more differ", more);
}

/* ---- of the results -------------------------------------------------------------------------- */

typedef bool judged_test(const vn_checkpoints *all, const vn_replayed_findings *j, int i);

/* Lists the places of the results that pass. Returns how many do. */
static int places_of(const vn_opened *o, const vn_checkpoints *all, const vn_replayed_findings *j, judged_test *test,
                     char places[WORDS])
{
	VN_ENDS(vn_places_free) vn_name_places found = { 0 };
	int                                    n = 0;

	for (int i = 0; i < j->n; i++)
		if (j->of[i].checkpoint >= 0 && test(all, j, i)) {
			vn_places_add(&found, o->replayed->result[i].name);
			n++;
		}
	vn_places_say(&found, NAMED, places, WORDS);
	return n;
}

static bool is_other_order(const vn_checkpoints *all, const vn_replayed_findings *j, int i)
{
	return all->of[j->of[i].checkpoint].replay.another_order;
}

static bool is_tied(const vn_checkpoints *all, const vn_replayed_findings *j, int i)
{
	(void)all;
	return j->of[i].ids.ties > 0;
}

static bool is_behind_choices(const vn_checkpoints *all, const vn_replayed_findings *j, int i)
{
	(void)all;
	return j->of[i].exchanged > 0;
}

static bool is_narrow(const vn_checkpoints *all, const vn_replayed_findings *j, int i)
{
	(void)all;
	return j->of[i].narrow;
}

/* Healthy runs reach 5.6 standard errors, with other kernels too; a factor of 8.4853 in place of
 * bfloat16's 8.5 has 13 to 15. */
#define SLOPE_LIMIT 8.0

static bool is_sloped(const vn_checkpoints *all, const vn_replayed_findings *j, int i)
{
	(void)all;
	return j->of[i].sloped && j->of[i].slope.errors > SLOPE_LIMIT;
}

static void say_slopes(const vn_opened *o, const vn_checkpoints *all, vn_lines *notes, const vn_replayed_findings *j)
{
	char places[WORDS];
	int  first = 0;

	if (!places_of(o, all, j, is_sloped, places))
		return;
	while (!is_sloped(all, j, first))
		first++;
	const vn_floor_slope *s = &j->of[first].slope;
	vn_lines_add(notes,
	             "factor: the candidate's numbers are %.5g times what they should be where the reference's model in "
	             "this format has %.5g times (%.2g standard errors apart; below the limit): %s",
	             1 + s->own, 1 + s->floor, s->errors, places);
}

/* ---- mistakes below the limit ---------------------------------------------------------------- */

/* Measured on 24 tokens: 0.91 to 1.03 with an error of at most 0.04 where a GELU is another one,
 * -0.18 to 0.13 with an error of at most 0.11 where it is not. */
static bool is_shown(double share, double error)
{
	return share >= 6 * error && fabs(share - 1) <= fmax(4 * error, 0.2);
}

/* One variant, in the results of one place: all layers together show more than each. */
typedef struct said_variant {
	const vn_projection *of;
	char                 place[VN_NAME_MAX];
	double               weight, sum; /* 1 / error^2, and the shares times that */
	vn_name_places       shown;       /* whose own share shows it */
	int                  results;
} said_variant;

static bool same_variant(const vn_projection *a, const vn_projection *b)
{
	return strcmp(a->word, b->word) == 0 && strcmp(a->is, b->is) == 0 && strcmp(a->due, b->due) == 0;
}

enum { VARIANTS = 256 };

static void add_variant(said_variant *all, int *n, const char *name, const vn_projection *p)
{
	char place[VN_NAME_MAX];
	int  k = 0;

	vn_place_of(name, place);
	while (k < *n && !(same_variant(all[k].of, p) && strcmp(all[k].place, place) == 0))
		k++;
	if (k == VARIANTS)
		return;
	if (k == *n) {
		all[(*n)++] = (said_variant) { .of = p };
		memcpy(all[k].place, place, sizeof place);
	}
	if (is_shown(p->share, p->error))
		vn_places_add(&all[k].shown, name);
	all[k].weight += 1 / (p->error * p->error);
	all[k].sum += p->share / (p->error * p->error);
	all[k].results++;
}

static void say_variant(vn_lines *notes, const said_variant *v)
{
	const int    row = vn_variant_find(v->of->word);
	const double share = v->sum / v->weight, error = 1 / sqrt(v->weight);
	char         words[VN_LINE_MAX], places[WORDS], id[40] = "";
	const bool   all = is_shown(share, error);

	if (row < 0 || (!all && !v->shown.n))
		return;
	if (vn_variant_mistake(row) != VN_NO_MISTAKE)
		snprintf(id, sizeof id, "%s: ", vn_mistake_id(vn_variant_mistake(row)));
	snprintf(words, sizeof words, vn_variant_form(row), v->of->is, v->of->due);
	vn_text_clean(words, sizeof words);
	if (all)
		vn_lines_add(notes,
		             "below the limit: %s%s: the error contains %.3g +- %.1g of the difference that it makes: %s (%d)",
		             id, words, share, error, v->place, v->results);
	else
		vn_lines_add(notes, "below the limit: %s%s: the error contains the difference that it makes: %s", id, words,
		             vn_places_say(&v->shown, NAMED, places, sizeof places));
}

static void say_variants(const vn_opened *o, vn_lines *notes, const vn_replayed_findings *j)
{
	VN_FREED said_variant *all = vn_alloc_zero(VARIANTS, sizeof *all);
	int                    n = 0;

	for (int i = 0; i < j->n; i++) {
		const vn_judged_result *r = &o->replayed->result[i];
		const bool              right = j->of[i].checkpoint >= 0 && !j->of[i].wrong;
		for (int k = 0; right && k < r->n_projections; k++)
			add_variant(all, &n, r->name, &r->projection[k]);
	}
	for (int i = 0; i < n; i++) {
		say_variant(notes, &all[i]);
		vn_places_free(&all[i].shown);
	}
}

void vn_replayed_say(const vn_opened *o, const vn_checkpoints *all, vn_lines *notes, const vn_replayed_findings *j)
{
	char    places[WORDS];
	int64_t ties = 0, exchanged = 0;
	int     n;

	say_by_whom(o, notes, j);
	say_unjudged(o, notes);
	say_settings(o, notes);
	if ((n = places_of(o, all, j, is_other_order, places)))
		vn_lines_add(notes,
		             "computed in another order, same result: %d result%s differ%s, and what was computed through %s "
		             "does not: %s",
		             n, n == 1 ? "" : "s", n == 1 ? "s" : "", n == 1 ? "it" : "them", places);
	for (int i = 0; i < j->n; i++) {
		ties += j->of[i].ids.ties;
		exchanged += j->of[i].checkpoint >= 0 ? j->of[i].exchanged : 0;
	}
	if (places_of(o, all, j, is_tied, places))
		vn_lines_add(notes,
		             "ties: %" PRId64 " choice%s another than the reference's where rounding decides, no error: %s",
		             ties, ties == 1 ? " is" : "s are", places);
	if (places_of(o, all, j, is_behind_choices, places))
		vn_lines_add(notes,
		             "choices: %" PRId64
		             " that %s not recorded, another than the reference's where rounding decides, as "
		             "the candidate's results show: %s",
		             exchanged, exchanged == 1 ? "is" : "are", places);
	if (places_of(o, all, j, is_narrow, places))
		vn_lines_add(notes,
		             "narrower: stored in a coarser format than the reference's model in the candidate's precision "
		             "has there, and judged in that: %s",
		             places);
	say_slopes(o, all, notes, j);
	say_variants(o, notes, j);
}
