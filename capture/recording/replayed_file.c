/* replayed_file.c: see replayed_file.h. */
#include "capture/recording/replayed_file.h"

#include "libref/base/alloc.h"
#include "libref/base/intern.h"
#include "libref/base/order.h"
#include "libref/base/system.h"
#include "libref/base/text.h"
#include "libref/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- to which recordings it belongs ---------------------------------------------------------- */

VN_ORDER_BY(compare_entries, vn_entry *const, VN_ORDER((*x)->step, (*y)->step), strcmp((*x)->name, (*y)->name))

/* The digest of all tensors of a recording: of the lines "STEP NAME DIGEST\n", sorted by step and
 * name. */
static vn_digest digest_of_all(const vn_recording *r)
{
	const int                 n = vn_recording_count(r);
	VN_FREED const vn_entry **list = vn_alloc((size_t)n, sizeof(vn_entry *));
	vn_digester              *sum = vn_alloc_check(vn_digester_create());
	char                      line[VN_NAME_MAX + VN_DIGEST_TEXT + 32];

	for (int i = 0; i < n; i++)
		list[i] = vn_recording_entry(r, i);
	qsort(list, (size_t)n, sizeof *list, compare_entries);
	for (int i = 0; i < n; i++) {
		const vn_digest d = vn_entry_digest(list[i]);
		const int       bytes = snprintf(line, sizeof line, "%d %s %s\n", list[i]->step, list[i]->name, d.hex);
		vn_digester_add(sum, line, (size_t)bytes);
	}
	return vn_digester_finish(sum);
}

static vn_status check_side(const vn_replayed_file *f, const vn_recording *r, const char *who, vn_error *err)
{
	const char     *said = vn_facts_get(vn_recording_run(f->recording), who);
	vn_digest_bytes bytes;
	if (!said || !vn_digest_pack(said, &bytes))
		return vn_fail(err, VN_ERR_FORMAT, "%s: /run: attribute %s is no digest", vn_recording_path(f->recording), who);
	const vn_digest have = digest_of_all(r);
	if (strcmp(said, have.hex) != 0)
		return vn_fail(err, VN_ERR_MISMATCH,
		               "%s: was made for another %s than %s (its digest is %s, expected %s): replay this one",
		               vn_recording_path(f->recording), who, vn_recording_path(r), have.hex, said);
	return VN_OK;
}

/* ---- its lines ------------------------------------------------------------------------------- */

/* Reads a text; "" if it is absent; NULL: it is no text, too long, or there is no memory. */
static const char *text_of(const json_t *j, const char *key)
{
	const json_t *member = vn_json_field(j, key);
	const char   *s = member ? json_string_value(member) : "";
	return s && strlen(s) < VN_NAME_MAX ? vn_intern(s) : NULL;
}

static bool number_of(const json_t *j, const char *key, int *x)
{
	const json_t *n = json_object_get(j, key);

	*x = (int)json_integer_value(n);
	return json_is_integer(n) && json_integer_value(n) >= 0 && json_integer_value(n) <= INT32_MAX;
}

static bool kind_of(const char *word, vn_judged_kind *kind)
{
	const int i = vn_text_word("numbers|ids|choice", word);

	*kind = (vn_judged_kind)i;
	return i >= 0;
}

static bool lists_names(const json_t *a)
{
	for (size_t i = 0; i < json_array_size(a); i++)
		if (!json_is_string(json_array_get(a, i)))
			return false;
	return !a || json_is_array(a);
}

/* Returns the entry of the file that holds this part of a result; -1: none. */
static int part_of(const vn_replayed_file *f, const vn_judged_result *r, const char *part)
{
	char name[VN_NAME_MAX];

	if (snprintf(name, sizeof name, "%s.%s", r->name, part) >= (int)sizeof name)
		return -1;
	return vn_recording_find(f->recording, r->step, name);
}

/* Reads what names a mistake. Returns false if it is no text, or too long. */
static bool read_mistake(const json_t *j, const char **word, const char **is, const char **due)
{
	return json_is_object(j) && (*word = text_of(j, "what")) && **word && (*is = text_of(j, "is")) &&
	       (*due = text_of(j, "due"));
}

/* Reads the mistakes that the replay tried. Returns what is wrong with them; NULL: nothing. */
static const char *read_tried(const json_t *j, vn_judged_result *r)
{
	const json_t *a = json_object_get(j, "alternatives"), *p = json_object_get(j, "projections");
	const size_t  n = json_array_size(a), k = json_array_size(p);

	if ((a && !json_is_array(a)) || (p && !json_is_array(p)) || n > VN_ALTERNATIVES_MOST || k > VN_ALTERNATIVES_MOST)
		return "its alternatives or projections are no list, or more than 16";
	if (json_object_get(j, "tried") && !number_of(j, "tried", &r->n_tried))
		return "tried is not a number from 0 on";
	r->alternative = vn_alloc_zero(n, sizeof *r->alternative);
	r->projection = vn_alloc_zero(k, sizeof *r->projection);
	for (size_t i = 0; i < n; i++, r->n_alternatives++) {
		vn_tried_mistake *x = &r->alternative[i];
		if (!read_mistake(json_array_get(a, i), &x->word, &x->is, &x->due))
			return "an alternative without what, is or due";
	}
	for (size_t i = 0; i < k; i++, r->n_projections++) {
		vn_projection *x = &r->projection[i];
		const json_t  *of = json_array_get(p, i);
		if (!read_mistake(of, &x->word, &x->is, &x->due))
			return "a projection without what, is or due";
		x->share = json_number_value(json_object_get(of, "share"));
		x->error = json_number_value(json_object_get(of, "error"));
		if (!json_is_number(json_object_get(of, "share")) || !(x->error > 0))
			return "a projection without a share, or with an error that is not above 0";
	}
	return NULL;
}

/* Reads a line. Returns what is wrong with it; NULL: nothing. */
static const char *read_result(const json_t *j, vn_judged_result *r)
{
	static const char *const lists[] = { "region", "extra", "reads", "modules", "again_region" };
	const char              *kind;

	if (!json_is_object(j))
		return "not a JSON object";
	if (!number_of(j, "step", &r->step) || !number_of(j, "node", &r->node))
		return "its step or node is not a number from 0 on";
	if (json_object_get(j, "span") && (!number_of(j, "span", &r->span) || r->span < 1))
		return "its span is not a number from 1 on";
	if (json_object_get(j, "exchanged") && (!number_of(j, "exchanged", &r->exchanged) || r->exchanged < 1))
		return "its exchanged choices are not a number from 1 on";
	if (!(r->name = text_of(j, "name")) || !*r->name || !(r->reference = text_of(j, "reference")) ||
	    !(r->op = text_of(j, "op")) || !(r->scores = text_of(j, "scores")) || !(r->ids = text_of(j, "ids")))
		return "a name is missing, no text, or longer than 127 bytes";
	if (!*r->reference)
		r->reference = r->name;
	if (!(kind = text_of(j, "kind")) || !kind_of(kind, &r->kind))
		return "its kind is not numbers, ids or choice";
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (!lists_names(vn_json_field(j, lists[i])))
			return "a list of names is no list, or holds other things than names";
	const char *format = text_of(j, "floor_format");
	r->floor_format = VN_N_DTYPES;
	if (!format || (*format && (!vn_dtype_from_name(format, &r->floor_format) || r->floor_format >= VN_N_DTYPES)))
		return "its floor_format is no format of numbers";
	return r->kind == VN_JUDGED_CHOICE && !*r->scores ? "a choice without scores" : read_tried(j, r);
}

static bool same_shape(const vn_recording *a, int i, const vn_recording *b, int k)
{
	return i < 0 || vn_shape_equal(&vn_recording_entry(a, i)->shape, &vn_recording_entry(b, k)->shape);
}

/* Finds the numbers that a result names. Returns what is wrong; NULL: nothing. */
static const char *find_numbers(const vn_replayed_file *f, const vn_recording *ref, const vn_recording *cand,
                                vn_judged_result *r)
{
	r->cand = vn_recording_find(cand, r->step, r->name);
	r->ref = vn_recording_find(ref, r->step, r->reference);
	r->expected = part_of(f, r, "expected");
	r->floor = part_of(f, r, "floor");
	r->again = part_of(f, r, "again");
	r->again_floor = part_of(f, r, "again_floor");
	if (r->cand < 0)
		return "the candidate has no such tensor";
	if (r->ref < 0)
		return "the reference has no such tensor";
	if (r->expected < 0)
		return "its numbers (expected) are missing";
	if (!same_shape(f->recording, r->expected, cand, r->cand) || !same_shape(f->recording, r->floor, cand, r->cand) ||
	    !same_shape(f->recording, r->again, cand, r->cand) || !same_shape(f->recording, r->again_floor, cand, r->cand))
		return "its numbers have another shape than the candidate's";
	for (int i = 0; i < r->n_alternatives; i++) {
		vn_tried_mistake *x = &r->alternative[i];
		char              part[32];
		snprintf(part, sizeof part, "alternative%d", i);
		if ((x->numbers = part_of(f, r, part)) < 0)
			return "the numbers of an alternative are missing";
		snprintf(part, sizeof part, "alternative%d_floor", i);
		x->floor = part_of(f, r, part);
		if (!same_shape(f->recording, x->numbers, cand, r->cand) || !same_shape(f->recording, x->floor, cand, r->cand))
			return "an alternative has another shape than the candidate's";
	}
	return NULL;
}

json_t *vn_replayed_line(const vn_replayed_file *file, int i)
{
	return vn_json_parse(vn_recording_replayed(file->recording, VN_REPLAYED_RESULTS)->line[i], 0);
}

static vn_status read_results(vn_replayed_file *f, const vn_recording *ref, const vn_recording *cand, vn_error *err)
{
	const vn_recording_lines *lines = vn_recording_replayed(f->recording, VN_REPLAYED_RESULTS);
	int                       numbers = 0;

	f->result = vn_alloc_zero((size_t)lines->n, sizeof *f->result);
	f->by_name = vn_alloc_zero((size_t)lines->n, sizeof *f->by_name);
	for (int i = 0; i < lines->n; i++) {
		vn_judged_result *r = &f->result[i];
		json_t           *j = vn_json_parse(lines->line[i], JSON_REJECT_DUPLICATES);
		const char       *why = read_result(j, r);
		f->n++;
		json_decref(j);
		why = why ? why : find_numbers(f, ref, cand, r);
		if (!why && i > 0 && r->node < r[-1].node)
			why = "its node comes before that of the line before";
		if (why)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /replay/results[%d]%s%s: %s", vn_recording_path(f->recording), i,
			               r->name && *r->name ? ": " : "", r->name ? r->name : "", why);
		numbers += 1 + (r->floor >= 0) + (r->again >= 0) + (r->again_floor >= 0);
		for (int k = 0; k < r->n_alternatives; k++)
			numbers += 1 + (r->alternative[k].floor >= 0);
		f->again = f->again || r->again >= 0;
		f->by_name[i] = i;
	}
	if (numbers != vn_recording_count(f->recording))
		return vn_fail(err, VN_ERR_FORMAT, "%s: holds %d tensors, but its results name %d",
		               vn_recording_path(f->recording), vn_recording_count(f->recording), numbers);
	return VN_OK;
}

/* ---- by name --------------------------------------------------------------------------------- */

static int in_name_order(const void *a, const void *b, void *ctx)
{
	const vn_replayed_file *f = ctx;
	const vn_judged_result *x = &f->result[*(const int *)a], *y = &f->result[*(const int *)b];
	return x->step != y->step ? (x->step < y->step ? -1 : 1) : strcmp(x->name, y->name);
}

int vn_replayed_find(const vn_replayed_file *file, int step, const char *name)
{
	int low = 0, high = file->n - 1;

	while (low <= high) {
		const int               middle = low + (high - low) / 2;
		const vn_judged_result *r = &file->result[file->by_name[middle]];
		const int               order = r->step != step ? (r->step < step ? -1 : 1) : strcmp(r->name, name);
		if (order == 0)
			return file->by_name[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle - 1;
	}
	return -1;
}

static vn_status check_scores(const vn_replayed_file *f, vn_error *err)
{
	for (int i = 0; i < f->n; i++) {
		const vn_judged_result *r = &f->result[i];
		if (r->kind == VN_JUDGED_CHOICE && vn_replayed_find(f, r->step, r->scores) < 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /replay/results[%d]: %s: its scores, %s, are no result",
			               vn_recording_path(f->recording), i, r->name, r->scores);
	}
	return VN_OK;
}

static vn_status sort_results(vn_replayed_file *f, vn_error *err)
{
	if (f->n)
		vn_sort(f->by_name, (size_t)f->n, sizeof *f->by_name, in_name_order, f);
	for (int i = 1; i < f->n; i++)
		if (in_name_order(&f->by_name[i - 1], &f->by_name[i], f) == 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /replay/results: %s of step %d is listed twice",
			               vn_recording_path(f->recording), f->result[f->by_name[i]].name,
			               f->result[f->by_name[i]].step);
	return check_scores(f, err);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

bool vn_replayed_is_result(const char *name)
{
	return strncmp(name, "out.", 4) == 0;
}

bool vn_replayed_is_input(const char *name)
{
	return strncmp(name, "in.", 3) == 0;
}

vn_status vn_replayed_pair(vn_replayed_file *f, const vn_recording *ref, const vn_recording *cand, vn_error *err)
{
	const int n = vn_recording_count(ref), k = vn_recording_count(cand);

	f->partner = vn_alloc((size_t)n, sizeof *f->partner);
	f->home = vn_alloc((size_t)k, sizeof *f->home);
	for (int i = 0; i < k; i++)
		f->home[i] = -1;
	for (int i = 0; i < n; i++) {
		const vn_entry *e = vn_recording_entry(ref, i);
		const bool      same = vn_replayed_is_result(e->name) || vn_replayed_is_input(e->name);
		f->partner[i] = same ? vn_recording_find(cand, e->step, e->name) : -1;
		if (f->partner[i] >= 0)
			f->home[f->partner[i]] = i;
	}
	for (int i = 0; i < f->n; i++) {
		vn_judged_result *r = &f->result[i];
		r->ref = vn_recording_find(ref, r->step, r->reference);
		r->cand = vn_recording_find(cand, r->step, r->name);
		if (r->ref < 0 || r->cand < 0)
			return vn_fail(err, VN_ERR_MISMATCH,
			               "%s: step.%d/%s: the steps of the recordings are not compared as they were recorded",
			               vn_recording_path(f->recording), r->step, r->name);
		f->partner[r->ref] = r->cand;
		f->home[r->cand] = r->ref;
	}
	return VN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static vn_status read_format(vn_replayed_file *f, vn_error *err)
{
	const char *word = vn_facts_get(vn_recording_run(f->recording), "format");

	if (!vn_recording_complete(f->recording))
		return vn_fail(err, VN_ERR_FORMAT, "%s: is incomplete: the replay was interrupted",
		               vn_recording_path(f->recording));
	if (!word || !vn_dtype_from_name(word, &f->format) || f->format >= VN_N_ENGINE_DTYPES)
		return vn_fail(err, VN_ERR_FORMAT, "%s: /run: attribute format is not f16, bf16, f32 or f64",
		               vn_recording_path(f->recording));
	return VN_OK;
}

vn_status vn_replayed_file_open(const char *path, const vn_recording *ref, const vn_recording *cand,
                                vn_replayed_file **file, vn_error *err)
{
	vn_replayed_file *f = *file = vn_alloc_zero(1, sizeof *f);
	vn_status         st;

	if (!(st = vn_recording_open_replayed(path, &f->recording, err)) && !(st = read_format(f, err)) &&
	    !(st = check_side(f, cand, "candidate", err)) && !(st = check_side(f, ref, "reference", err)) &&
	    !(st = read_results(f, ref, cand, err)))
		st = sort_results(f, err);
	if (st) {
		vn_replayed_file_close(f);
		*file = NULL;
	}
	return st;
}

void vn_replayed_file_close(vn_replayed_file *file)
{
	if (!file)
		return;
	vn_recording_close(file->recording);
	for (int i = 0; i < file->n; i++)
		VN_FREE(file->result[i].alternative, file->result[i].projection);
	VN_FREE(file->result, file->by_name, file->partner, file->home, file);
}
