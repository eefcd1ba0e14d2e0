/* together.c: see together.h. */
#include "compare/folders/together_internal.h"

#include "compare/text/json.h"
#include "libref/base/alloc.h"
#include "libref/base/digest.h"
#include "libref/base/say.h"
#include "libref/base/shell.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *const vn_together_verdicts[] = { "within", "outside", "trouble" };

void vn_together_free(vn_together *t)
{
	json_decref(t->root);
	*t = (vn_together) { .sides = 0 };
}

static vn_status no_memory(vn_error *err)
{
	return vn_fail(err, VN_ERR_NOMEM, "no memory for the outcome of two folders");
}

/* ---- a pair -------------------------------------------------------------------------------- */

static const json_t *pair_at(const vn_together *t, size_t i)
{
	return json_array_get(t->pairs, i);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static int status_of(const json_t *pair)
{
	return (int)json_integer_value(json_object_get(pair, "status"));
}

static const char *recorder_of(const json_t *pair, int side)
{
	const char *by = json_string_value(json_array_get(json_object_get(pair, "recorded_by"), (size_t)side));
	return by ? by : "";
}

const char *vn_together_holder(int side, char letter[2])
{
	letter[0] = (char)('A' + side - 1);
	letter[1] = 0;
	return side ? letter : "reference";
}

static bool has_it(const vn_together *t, const json_t *pair, int side)
{
	const json_t *in = json_object_get(pair, "in"), *one;
	char          letter[2];
	size_t        i;

	if (t->sides == 2)
		return strcmp(json_string_value(in), side ? "reference" : "candidate") != 0;
	json_array_foreach(in, i, one)
	{
		if (strcmp(json_string_value(one), vn_together_holder(side, letter)) == 0)
			return true;
	}
	return false;
}

static bool was_compared(const vn_together *t, const json_t *pair)
{
	for (int s = 1; s < t->sides; s++)
		if (has_it(t, pair, 0) && has_it(t, pair, s))
			return true;
	return false;
}

/* The folders that have the file. With several candidates, a list: "reference", "A", "C". */
static json_t *who_has(const vn_together *t, const bool *there)
{
	json_t *list;
	char    letter[2];

	if (t->sides == 2)
		return json_string(!there[0] ? "candidate" : there[1] ? "both" : "reference");
	list = json_array();
	for (int s = 0; s < t->sides; s++)
		if (there[s])
			json_array_append_new(list, json_string(vn_together_holder(s, letter)));
	return list;
}

char *vn_together_pack(const vn_together *t, const vn_together_pair *p)
{
	json_t *j = json_pack("{s:o, s:o, s:i, s:s}", "name", vn_json_text(p->name), "in", who_has(t, p->there), "status",
	                      p->status, "verdict", vn_together_verdicts[p->status]),
		   *each = json_array(), *by = json_array();

	for (const char *one = p->each; *one; one++)
		json_array_append_new(each, *one == '-' ? json_null() : json_string(vn_together_verdicts[*one - '0']));
	for (int s = 0; s < t->sides; s++)
		json_array_append_new(by, *p->by[s] ? vn_json_text(p->by[s]) : json_null());
	if (t->sides > 2)
		json_object_set(j, "each", each);
	json_object_set_new(j, "words", vn_json_text(p->words));
	json_object_set_new(j, "recorded_by", by);
	char *text = vn_json_dump(j, JSON_COMPACT);
	json_decref(each);
	json_decref(j);
	return text;
}

/* What a person would type now: the report of the first pair that is not within its limits. */
static void set_next(vn_together *t, const char *name, const json_t *pair)
{
	char line[VN_SHELL_LINE] = "vernier compare", path[PATH_MAX];

	if (t->has_next || status_of(pair) == 0 || !was_compared(t, pair))
		return;
	for (int s = 0; s < t->sides; s++) {
		if (!has_it(t, pair, s))
			continue;
		snprintf(path, sizeof path, "%s/%s", t->side[s], name);
		vn_shell_add(line, sizeof line, path);
	}
	t->has_next = true;
	if (*line) /* it had room for all paths */
		json_object_set_new(t->root, "next", json_pack("[o]", vn_json_text(line)));
}

static vn_status add_pair(vn_together *t, const char *name, json_t *pair, vn_error *err)
{
	if (json_array_append_new(t->pairs, pair))
		return no_memory(err);
	set_next(t, name, pair);
	return VN_OK;
}

vn_status vn_together_add(vn_together *t, const char *name, const char *pair, vn_error *err)
{
	return add_pair(t, name, vn_json_parse(pair, 0), err);
}

/* ---- beginning ----------------------------------------------------------------------------- */

static vn_status add_sizes(const char *const *side, int sides, const vn_folder_pairs *pairs, int64_t *bytes,
                           vn_error *err)
{
	for (int i = 0; i < pairs->n; i++)
		for (int s = 0; s < sides; s++) {
			char        path[PATH_MAX];
			struct stat is;
			if (!pairs->pair[i].there[s])
				continue;
			if (snprintf(path, sizeof path, "%s/%s", side[s], pairs->pair[i].name) >= PATH_MAX)
				return vn_fail(err, VN_ERR_USAGE, "%s: the path is too long", pairs->pair[i].name);
			if (stat(path, &is) == 0)
				bytes[i] += is.st_size;
			else if (errno != ENOENT && errno != ELOOP) /* a link to nowhere is trouble of its pair alone */
				return vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
		}
	return VN_OK;
}

/* Two processes take parts of one comparison if they see the same files and were asked the same. */
static vn_digest digest_work(const char *const *side, int sides, const vn_folder_pairs *pairs, const int64_t *bytes,
                             const char *asked)
{
	vn_digester *d = vn_alloc_check(vn_digester_create());

	vn_digester_add(d, VERNIER_VERSION, sizeof VERNIER_VERSION);
	vn_digester_add(d, asked, strlen(asked) + 1);
	for (int s = 0; s < sides; s++)
		vn_digester_add(d, side[s], strlen(side[s]) + 1);
	for (int i = 0; i < pairs->n; i++) {
		const vn_folder_pair *p = &pairs->pair[i];
		char                  line[VN_MOST_FOLDERS + 32];
		vn_digester_add(d, p->name, strlen(p->name) + 1);
		for (int s = 0; s < sides; s++)
			line[s] = p->there[s] ? '1' : '0';
		const int n = sides + snprintf(line + sides, sizeof line - (size_t)sides, "%lld", (long long)bytes[i]);
		vn_digester_add(d, line, (size_t)n + 1);
	}
	return vn_digester_finish(d);
}

vn_status vn_together_begin(vn_together *t, const char *const *side, int sides, const vn_folder_pairs *pairs,
                            vn_folder_part part, const char *asked, bool *mine, int *order, vn_error *err)
{
	int64_t *bytes = vn_alloc_zero((size_t)pairs->n, sizeof *bytes);
	json_t  *ignored = json_array(), *candidates = json_array();

	*t = (vn_together) { .sides = sides };
	t->root = json_pack("{s:s, s:n, s:o}", "schema", VN_TOGETHER_SCHEMA, "verdict", "reference", vn_json_text(side[0]));
	for (int s = 0; s < sides; s++) {
		t->side[s] = side[s];
		json_array_append_new(ignored,
		                      json_pack("{s:i, s:i}", "folders", pairs->folders[s], "other_files", pairs->others[s]));
		if (s)
			json_array_append_new(candidates, vn_json_text(side[s]));
	}
	if (sides == 2)
		json_object_set(t->root, "candidate", json_array_get(candidates, 0));
	else
		json_object_set(t->root, "candidates", candidates);
	json_decref(candidates);
	if (part.of)
		json_object_set_new(t->root, "part", json_pack("{s:i, s:i}", "index", part.index, "of", part.of));
	const vn_status st = add_sizes(side, sides, pairs, bytes, err);
	if (!st) {
		json_object_set_new(t->root, "work", json_string(digest_work(side, sides, pairs, bytes, asked).hex));
		vn_folder_part_deal(bytes, pairs->n, part, mine, order);
	}
	json_object_set_new(t->root, "total", json_integer(pairs->n));
	json_object_set_new(t->root, "ignored", ignored);
	json_object_set_new(t->root, "pairs", json_array());
	t->pairs = json_object_get(t->root, "pairs");
	json_object_set_new(t->root, "next", json_array());
	free(bytes);
	return st;
}

const char *vn_together_work(const vn_together *t)
{
	return text_of(t->root, "work");
}

int vn_together_status(const vn_together *t)
{
	int worst = 0;

	for (size_t i = 0; i < json_array_size(t->pairs); i++)
		worst = status_of(pair_at(t, i)) > worst ? status_of(pair_at(t, i)) : worst;
	return worst;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Writes who recorded the files of a folder: "  (vernier-ref 1.0, f16; trained weights;
 * 2 files by another)". */
static void say_recorders(const vn_together *t, int side, FILE *out)
{
	const char *first = "";
	int         others = 0;

	for (size_t i = 0; i < json_array_size(t->pairs); i++) {
		const char *by = recorder_of(pair_at(t, i), side);
		first = *first ? first : by;
		others += *by && strcmp(by, first) != 0;
	}
	if (*first)
		vn_say(out, "  (%s", first);
	if (others)
		vn_say(out, "; %d file%s by another", others, others == 1 ? "" : "s");
	fputs(*first ? ")\n" : "\n", out);
}

static void say_sides(const vn_together *t, FILE *out)
{
	for (int s = 0; s < t->sides; s++) {
		if (s == 0)
			vn_say(out, "reference    %s", t->side[s]);
		else if (t->sides == 2)
			vn_say(out, "candidate    %s", t->side[s]);
		else
			vn_say(out, "candidate %c  %s", 'A' + s - 1, t->side[s]);
		say_recorders(t, s, out);
	}
}

/* The status of a pair for a candidate, as a word; NULL: neither it nor the reference has it. */
static const char *verdict_for(const vn_together *t, const json_t *pair, int side)
{
	return t->sides == 2 ? text_of(pair, "verdict")
	                     : json_string_value(json_array_get(json_object_get(pair, "each"), (size_t)side - 1));
}

/* "candidate A  cands: 5 within, 1 OUTSIDE" */
static void say_candidates(const vn_together *t, FILE *out)
{
	for (int s = 1; s < t->sides; s++) {
		const char *before = " ";
		vn_say(out, "candidate %c  %s:", t->sides == 2 ? ' ' : 'A' + s - 1, t->side[s]);
		for (int status = 0; status < 3; status++) {
			int n = 0;
			for (size_t i = 0; i < json_array_size(t->pairs); i++) {
				const char *verdict = verdict_for(t, pair_at(t, i), s);
				n += verdict && strcmp(verdict, vn_together_verdicts[status]) == 0;
			}
			if (n) {
				vn_say(out, "%s%d %s", before, n, status == 1 ? "OUTSIDE" : vn_together_verdicts[status]);
				before = ", ";
			}
		}
		fputs(*before == ',' ? "\n" : " nothing\n", out);
	}
}

static int count_of(const json_t *object, const char *key)
{
	return (int)json_integer_value(json_object_get(object, key));
}

void vn_together_text(const vn_together *t, FILE *out)
{
	const json_t *part = json_object_get(t->root, "part"), *ignored = json_object_get(t->root, "ignored");
	const int     total = count_of(t->root, "total");

	fputs("== together\n", out);
	say_sides(t, out);
	if (part)
		vn_say(out, "part %d of %d: %d of %d pair%s\n", count_of(part, "index"), count_of(part, "of"),
		       (int)json_array_size(t->pairs), total, total == 1 ? "" : "s");
	for (size_t i = 0; i < json_array_size(t->pairs); i++) {
		const json_t *p = pair_at(t, i);
		vn_say(out, "%-8s %s  %s\n", status_of(p) == 1 ? "OUTSIDE" : text_of(p, "verdict"), text_of(p, "name"),
		       text_of(p, "words"));
	}
	say_candidates(t, out);
	for (int s = 0; s < t->sides; s++) {
		const json_t *of = json_array_get(ignored, (size_t)s);
		vn_folder_left(t->side[s], count_of(of, "folders"), count_of(of, "other_files"), out);
	}
}

vn_status vn_together_json(const vn_together *t, FILE *out, vn_error *err)
{
	json_object_set_new(t->root, "verdict", json_string(vn_together_verdicts[vn_together_status(t)]));
	return vn_json_print(t->root, out, JSON_INDENT(1)) && fputc('\n', out) != EOF
	           ? VN_OK
	           : vn_fail(err, VN_ERR_IO, "the outcome of two folders could not be written");
}

/* ---- joining ------------------------------------------------------------------------------ */

static int part_of(const vn_together *t, const char *key)
{
	return count_of(json_object_get(t->root, "part"), key);
}

/* Which of the parts is number `index`; -1: none. */
static int part_number(const vn_together *part, int n, int index)
{
	for (int i = 0; i < n; i++)
		if (part_of(&part[i], "index") == index)
			return i;
	return -1;
}

static vn_status check_parts(const vn_together *part, const char *const *path, int n, vn_error *err)
{
	const int of = part_of(part, "of");

	for (int i = 0; i < n; i++) {
		const int index = part_of(&part[i], "index"), same = part_number(part, n, index);
		if (index == 0)
			return vn_fail(err, VN_ERR_MISMATCH, "%s: is whole, not a part: there is nothing to join", path[i]);
		if (part_of(&part[i], "of") != of)
			return vn_fail(err, VN_ERR_MISMATCH, "%s is one of %d parts, %s one of %d", path[i],
			               part_of(&part[i], "of"), path[0], of);
		if (strcmp(vn_together_work(&part[i]), vn_together_work(part)) != 0 ||
		    count_of(part[i].root, "total") != count_of(part->root, "total") || part[i].sides != part->sides)
			return vn_fail(err, VN_ERR_MISMATCH,
			               "%s is a part of another comparison than %s: of other files, with other "
			               "options, or by another version of vernier",
			               path[i], path[0]);
		if (same != i)
			return vn_fail(err, VN_ERR_MISMATCH, "%s and %s are the same part, %d of %d", path[same], path[i], index,
			               of);
	}
	for (int index = 1; index <= of; index++)
		if (part_number(part, n, index) < 0)
			return vn_fail(err, VN_ERR_MISMATCH, "part %d of %d is missing: run the same command with --part %d/%d",
			               index, of, index, of);
	return VN_OK;
}

/* The part with the first name that was not taken yet; at (n): how many pairs were taken from
 * each. */
static int next_part(const vn_together *part, int n, const size_t *at)
{
	int first = -1;

	for (int i = 0; i < n; i++)
		if (at[i] < json_array_size(part[i].pairs) &&
		    (first < 0 ||
		     strcmp(text_of(pair_at(&part[i], at[i]), "name"), text_of(pair_at(&part[first], at[first]), "name")) < 0))
			first = i;
	return first;
}

static vn_status join_pairs(const vn_together *part, const char *const *path, int n, vn_together *whole, vn_error *err)
{
	size_t     *at = vn_alloc_zero((size_t)n, sizeof *at);
	const int   total = count_of(part->root, "total");
	const char *before = "";
	int         i;
	vn_status   st = VN_OK;

	while (!st && (i = next_part(part, n, at)) >= 0) {
		json_t     *p = json_array_get(part[i].pairs, at[i]++);
		const char *name = text_of(p, "name");
		st = strcmp(before, name) == 0
		         ? vn_fail(err, VN_ERR_MISMATCH, "%s: holds %s, as another part does", path[i], name)
		         : add_pair(whole, name, json_incref(p), err);
		before = name;
	}
	free(at);
	if (!st && (int)json_array_size(whole->pairs) != total)
		st = vn_fail(err, VN_ERR_MISMATCH, "the parts hold %d of %d pairs: a part was cut short",
		             (int)json_array_size(whole->pairs), total);
	return st;
}

vn_status vn_together_join(const vn_together *part, const char *const *path, int n, vn_together *whole, vn_error *err)
{
	const vn_status st = check_parts(part, path, n, err);

	*whole = part[0];
	whole->root = st ? NULL : json_copy(part[0].root);
	whole->has_next = false;
	json_object_del(whole->root, "part");
	json_object_set_new(whole->root, "pairs", json_array());
	whole->pairs = json_object_get(whole->root, "pairs");
	json_object_set_new(whole->root, "next", json_array());
	return st ? st : join_pairs(part, path, n, whole, err);
}
