/* together.c: see together.h. */
#include "compare/folders/together.h"

#include "compare/text/json.h"
#include "libref/base/alloc.h"
#include "libref/base/digest.h"
#include "libref/base/intern.h"
#include "libref/base/map.h"
#include "libref/base/say.h"
#include "libref/base/shell.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SCHEMA "vernier-folders/1"

static const char *const verdicts[] = { "within", "outside", "trouble" }; /* by status */

void vn_together_free(vn_together *t)
{
	VN_FREE(t->pair, t->saw);
	*t = (vn_together) { .sides = 0 };
}

static const char *kept(const char *text)
{
	return vn_alloc_check(vn_intern(text));
}

static bool has_it(const vn_together_pair *p, int side)
{
	return p->there >> side & 1;
}

/* ---- as JSON --------------------------------------------------------------------------------- */

/* A folder that has a file, of several candidates: "reference", "A". */
static json_t *holder(int side)
{
	return side ? vn_json_letter((char)('A' + side - 1)) : json_string("reference");
}

/* The folders that have the file. With several candidates, a list. */
static json_t *holders(int sides, unsigned there)
{
	json_t *list;

	if (sides == 2)
		return json_string(there == 3 ? "both" : there == 2 ? "candidate" : "reference");
	list = json_array();
	for (int s = 0; s < sides; s++)
		if (there >> s & 1)
			json_array_append_new(list, holder(s));
	return list;
}

static json_t *pair_json(const vn_together_pair *p, int sides)
{
	json_t *j = json_pack("{s:o, s:o, s:i, s:s}", "name", vn_json_text(p->name), "in", holders(sides, p->there),
	                      "status", p->status, "verdict", verdicts[p->status]),
		   *each = json_array(), *by = json_array();

	for (const char *one = p->each; *one; one++)
		json_array_append_new(each, *one == '-' ? json_null() : json_string(verdicts[*one - '0']));
	for (int s = 0; s < sides; s++)
		json_array_append_new(by, vn_json_text(p->by[s]));
	if (sides > 2)
		json_object_set(j, "each", each);
	json_object_set_new(j, "words", vn_json_text(p->words));
	json_object_set_new(j, "recorded_by", by);
	json_decref(each);
	return j;
}

static json_t *whole_json(const vn_together *t)
{
	json_t *j = json_pack("{s:s, s:s, s:o}", "schema", SCHEMA, "verdict", verdicts[vn_together_status(t)], "reference",
	                      vn_json_text(t->side[0])),
		   *several = json_array(), *ignored = json_array(), *pairs = json_array(), *saw = json_array();

	for (int s = 1; s < t->sides; s++)
		json_array_append_new(several, vn_json_text(t->side[s]));
	if (t->sides == 2)
		json_object_set(j, "candidate", json_array_get(several, 0));
	else
		json_object_set(j, "candidates", several);
	json_decref(several);
	if (t->part.of)
		json_object_set_new(j, "part", json_pack("{s:i, s:i}", "index", t->part.index, "of", t->part.of));
	json_object_set_new(j, "work", json_string(t->work));
	json_object_set_new(j, "total", json_integer(t->total));
	for (int s = 0; s < t->sides; s++)
		json_array_append_new(ignored, json_pack("{s:i, s:i}", "folders", t->folders[s], "other_files", t->others[s]));
	json_object_set_new(j, "ignored", ignored);
	for (int i = 0; i < t->n_saw; i++)
		json_array_append_new(saw, vn_json_text(t->saw[i]));
	if (t->n_saw)
		json_object_set(j, "saw", saw);
	json_decref(saw);
	for (int i = 0; i < t->n; i++)
		json_array_append_new(pairs, pair_json(&t->pair[i], t->sides));
	json_object_set_new(j, "pairs", pairs);
	json_object_set_new(j, "next", t->next && *t->next ? json_pack("[o]", vn_json_text(t->next)) : json_array());
	return j;
}

vn_status vn_together_json(const vn_together *t, FILE *out, vn_error *err)
{
	return vn_json_print_value(whole_json(t), out, JSON_INDENT(1)) && fputc('\n', out) != EOF
	           ? VN_OK
	           : vn_fail(err, VN_ERR_IO, "the outcome of two folders could not be written");
}

/* ---- from JSON: whether it is right shows when it is written again ---- */

static const char *text_of(const json_t *j)
{
	return json_is_string(j) ? kept(json_string_value(j)) : "";
}

static int count_of(const json_t *object, const char *key)
{
	return (int)json_integer_value(json_object_get(object, key));
}

static int status_named(const json_t *verdict)
{
	int status = 2;

	while (status > 0 && strcmp(text_of(verdict), verdicts[status]) != 0)
		status--;
	return status;
}

static unsigned read_holders(const json_t *in, int sides)
{
	unsigned there = 0;
	size_t   i;
	json_t  *one;

	if (sides == 2)
		return strcmp(text_of(in), "both") == 0 ? 3 : strcmp(text_of(in), "candidate") == 0 ? 2 : 1;
	json_array_foreach(in, i, one)
	{
		const char *word = text_of(one);
		there |= strcmp(word, "reference") == 0 ? 1U : *word >= 'A' && *word < 'A' + sides ? 2U << (*word - 'A') : 0;
	}
	return there;
}

/* The status is the worst of the candidates'. null: neither the candidate nor the reference has
 * it. */
static bool read_each(const json_t *list, int sides, vn_together_pair *p)
{
	int worst = 0;

	for (int s = 1; sides > 2 && s < sides; s++) {
		const json_t *j = json_array_get(list, (size_t)s - 1);
		const int     one = status_named(j);
		worst = one > worst ? one : worst;
		p->each[s - 1] = json_is_null(j) ? '-' : (char)('0' + one);
		if (json_is_null(j) && (has_it(p, 0) || has_it(p, s)))
			return false;
	}
	return sides == 2 || worst == p->status;
}

static bool read_pair(const json_t *j, int sides, vn_together_pair *p)
{
	*p = (vn_together_pair) {
		.name = text_of(json_object_get(j, "name")),
		.there = read_holders(json_object_get(j, "in"), sides),
		.status = status_named(json_object_get(j, "verdict")),
		.words = text_of(json_object_get(j, "words")),
	};
	for (int s = 0; s < sides; s++) {
		const char *by = text_of(json_array_get(json_object_get(j, "recorded_by"), (size_t)s));
		p->by[s] = *by ? by : NULL;
	}
	return read_each(json_object_get(j, "each"), sides, p) && p->there;
}

static bool read_whole(const json_t *j, vn_together *t)
{
	const json_t *several = json_object_get(j, "candidates"), *part = json_object_get(j, "part"),
				 *pairs = json_object_get(j, "pairs"), *next = json_object_get(j, "next"),
				 *saw = json_object_get(j, "saw");
	const size_t n = json_array_size(several);

	*t = (vn_together) {
		.side = { text_of(json_object_get(j, "reference")), text_of(json_object_get(j, "candidate")) },
		.sides = several ? (int)n + 1 : 2,
		.part = { count_of(part, "index"), count_of(part, "of") },
		.work = text_of(json_object_get(j, "work")),
		.total = count_of(j, "total"),
		.pair = vn_alloc_zero(json_array_size(pairs), sizeof *t->pair),
		.n = (int)json_array_size(pairs),
		.saw = vn_alloc_zero(json_array_size(saw), sizeof *t->saw),
		.n_saw = (int)json_array_size(saw),
	};
	for (int i = 0; i < t->n_saw; i++)
		t->saw[i] = text_of(json_array_get(saw, (size_t)i));
	if ((several && (n < 2 || n >= VN_MOST_FOLDERS)) || t->total < 0 ||
	    (part && (t->part.index < 1 || t->part.index > t->part.of || t->part.of > VN_MOST_PARTS)))
		return false;
	for (int s = 0; s < t->sides; s++) {
		const json_t *left = json_array_get(json_object_get(j, "ignored"), (size_t)s);
		t->folders[s] = count_of(left, "folders");
		t->others[s] = count_of(left, "other_files");
		if (s && several)
			t->side[s] = text_of(json_array_get(several, (size_t)s - 1));
	}
	t->next = json_array_size(next) ? text_of(json_array_get(next, 0)) : NULL;
	for (int i = 0; i < t->n; i++)
		if (!read_pair(json_array_get(pairs, (size_t)i), t->sides, &t->pair[i]) ||
		    (i && strcmp(t->pair[i - 1].name, t->pair[i].name) >= 0))
			return false;
	VN_OWNED json_t *again = whole_json(t);
	return json_equal(j, again);
}

vn_status vn_together_read(const char *path, vn_together *t, vn_error *err)
{
	enum { MOST_BYTES = 1 << 30 };
	char        *text = NULL;
	size_t       bytes = 0;
	json_error_t why;
	vn_status    st = vn_read_text(path, MOST_BYTES, &text, &bytes, err);

	*t = (vn_together) { .sides = 0 };
	if (st)
		return st == VN_ERR_FORMAT ? vn_context(err, st, "the summaries of all parts (compare --summary) are joined")
		                           : st;
	VN_OWNED json_t *j = vn_json_load(text, bytes, JSON_REJECT_DUPLICATES, &why);
	free(text); /* before read_whole makes the tree a second time */
	if (!j)
		return vn_fail(err, VN_ERR_FORMAT, "%s: line %d: not JSON: %s", path, why.line, why.text);
	return read_whole(j, t) ? VN_OK
	                        : vn_fail(err, VN_ERR_FORMAT,
	                                  "%s: was not written by vernier compare --summary (schema " SCHEMA ")", path);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* What a person would type now: the report of the first pair that is not within its limits. */
static void set_next(vn_together *t, const char *name, const vn_together_pair *p)
{
	char line[VN_SHELL_LINE] = "vernier compare", path[PATH_MAX];

	if (t->next || p->status == 0 || !has_it(p, 0) || p->there == 1)
		return;
	for (int s = 0; s < t->sides; s++) {
		if (!has_it(p, s))
			continue;
		snprintf(path, sizeof path, "%s/%s", t->side[s], name);
		vn_shell_add(line, sizeof line, path);
	}
	t->next = kept(line);
}

static void add_pair(vn_together *t, const char *name, const vn_together_pair *p)
{
	t->pair = vn_alloc_grown(t->pair, (size_t)t->n, sizeof *t->pair);
	t->pair[t->n++] = *p;
	set_next(t, name, p);
}

char *vn_together_pack(const vn_together *t, const vn_together_pair *p)
{
	VN_OWNED json_t *j = pair_json(p, t->sides);
	char            *text = vn_json_dump(j, JSON_COMPACT);

	return text;
}

vn_status vn_together_add(vn_together *t, const char *name, const char *pair, vn_error *err)
{
	json_t          *j = vn_json_parse(pair, 0);
	vn_together_pair p;
	const bool       right = j && read_pair(j, t->sides, &p);

	json_decref(j);
	if (!right)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the outcome of two folders");
	add_pair(t, name, &p);
	return VN_OK;
}

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
	VN_FREED int64_t *bytes = vn_alloc_zero((size_t)pairs->n, sizeof *bytes);

	*t = (vn_together) { .sides = sides, .part = part, .total = pairs->n };
	memcpy(t->side, side, (size_t)sides * sizeof *side);
	memcpy(t->folders, pairs->folders, sizeof t->folders);
	memcpy(t->others, pairs->others, sizeof t->others);
	const vn_status st = add_sizes(side, sides, pairs, bytes, err);
	if (!st) {
		t->work = kept(digest_work(side, sides, pairs, bytes, asked).hex);
		vn_folder_part_deal(bytes, pairs->n, part, mine, order);
	}
	return st;
}

void vn_together_saw(vn_together *t, const char *name, vn_digest files)
{
	char text[sizeof files.hex + PATH_MAX];

	snprintf(text, sizeof text, "%.16s %s", files.hex, name);
	t->saw = vn_alloc_grown(t->saw, (size_t)t->n_saw, sizeof *t->saw);
	t->saw[t->n_saw++] = kept(text);
}

vn_digest vn_together_same(const vn_together *t)
{
	vn_digester *d = vn_alloc_check(vn_digester_create());

	if (t->work)
		vn_digester_add(d, t->work, strlen(t->work));
	for (int i = 0; i < t->n_saw; i++)
		vn_digester_add(d, t->saw[i], strlen(t->saw[i]) + 1);
	return vn_digester_finish(d);
}

int vn_together_status(const vn_together *t)
{
	int worst = 0;

	for (int i = 0; i < t->n; i++)
		worst = t->pair[i].status > worst ? t->pair[i].status : worst;
	return worst;
}

/* ---- as text ---- */

/* Writes who recorded the files of a folder: "  (vernier-ref 1.0, f16; trained weights;
 * 2 files by another)". */
static void say_recorders(const vn_together *t, int side, FILE *out)
{
	const char *first = NULL;
	int         others = 0;

	for (int i = 0; i < t->n; i++) {
		const char *by = t->pair[i].by[side];
		first = first ? first : by;
		others += by && by != first; /* one copy of each text */
	}
	if (first)
		vn_say(out, "  (%s", first);
	if (others)
		vn_say(out, "; %d file%s by another", others, others == 1 ? "" : "s");
	fputs(first ? ")\n" : "\n", out);
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

/* "candidate A  cands: 5 within, 1 OUTSIDE" */
static void say_candidates(const vn_together *t, FILE *out)
{
	for (int s = 1; s < t->sides; s++) {
		const char *before = " ";
		vn_say(out, "candidate %c  %s:", t->sides == 2 ? ' ' : 'A' + s - 1, t->side[s]);
		for (int status = 0; status < 3; status++) {
			int n = 0;
			for (int i = 0; i < t->n; i++)
				n += t->sides == 2 ? t->pair[i].status == status : t->pair[i].each[s - 1] == '0' + status;
			if (n) {
				vn_say(out, "%s%d %s", before, n, status == 1 ? "OUTSIDE" : verdicts[status]);
				before = ", ";
			}
		}
		fputs(*before == ',' ? "\n" : " nothing\n", out);
	}
}

void vn_together_text(const vn_together *t, FILE *out)
{
	fputs("== together\n", out);
	say_sides(t, out);
	if (t->part.of)
		vn_say(out, "part %d of %d: %d of %d pair%s\n", t->part.index, t->part.of, t->n, t->total,
		       t->total == 1 ? "" : "s");
	for (int i = 0; i < t->n; i++) {
		const vn_together_pair *p = &t->pair[i];
		vn_say(out, "%-8s %s  %s\n", p->status == 1 ? "OUTSIDE" : verdicts[p->status], p->name, p->words);
	}
	say_candidates(t, out);
	for (int s = 0; s < t->sides; s++)
		vn_folder_left(t->side[s], t->folders[s], t->others[s], out);
}

/* ---- joining ------------------------------------------------------------------------------ */

/* Which of the parts is number `index`; -1: none. */
static int part_number(const vn_together *part, int n, int index)
{
	for (int i = 0; i < n; i++)
		if (part[i].part.index == index)
			return i;
	return -1;
}

/* The first pair whose files were others when the second part was compared; NULL: none. */
static const char *recorded_again(const vn_together *a, const vn_together *b)
{
	for (int i = 0; i < a->n_saw && i < b->n_saw; i++) {
		const char *x = strchr(a->saw[i], ' '), *y = strchr(b->saw[i], ' ');
		if (x && y && strcmp(x, y) == 0 && strcmp(a->saw[i], b->saw[i]) != 0)
			return x + 1;
	}
	return NULL;
}

static vn_status check_parts(const vn_together *part, const char *const *path, int n, vn_error *err)
{
	const int of = part->part.of;

	for (int i = 0; i < n; i++) {
		const int index = part[i].part.index, same = part_number(part, n, index);
		if (index == 0)
			return vn_fail(err, VN_ERR_MISMATCH, "%s: is whole, not a part: there is nothing to join", path[i]);
		if (part[i].part.of != of)
			return vn_fail(err, VN_ERR_MISMATCH, "%s is one of %d parts, %s one of %d", path[i], part[i].part.of,
			               path[0], of);
		const char *again = recorded_again(part, &part[i]);
		if (again)
			return vn_fail(err, VN_ERR_MISMATCH,
			               "%s was recorded again between %s and %s: compare the part again that was made first", again,
			               path[0], path[i]);
		if (part[i].n_saw != part->n_saw || strcmp(part[i].work, part->work) != 0 || part[i].total != part->total ||
		    part[i].sides != part->sides)
			return vn_fail(err, VN_ERR_MISMATCH,
			               "%s is a part of another comparison than %s: of other files, with another model, "
			               "other options, limits or name maps, or by another version of vernier",
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
static int next_part(const vn_together *part, int n, const int *at)
{
	int first = -1;

	for (int i = 0; i < n; i++)
		if (at[i] < part[i].n && (first < 0 || strcmp(part[i].pair[at[i]].name, part[first].pair[at[first]].name) < 0))
			first = i;
	return first;
}

vn_status vn_together_join(const vn_together *part, const char *const *path, int n, vn_together *whole, vn_error *err)
{
	int        *at = vn_alloc_zero((size_t)n, sizeof *at), i;
	const char *before = "";
	vn_status   st = check_parts(part, path, n, err);

	*whole = *part;
	whole->part.of = whole->n = 0;
	whole->pair = NULL;
	whole->saw = vn_alloc((size_t)part->n_saw + 1, sizeof *whole->saw);
	memcpy(whole->saw, part->saw, (size_t)part->n_saw * sizeof *whole->saw);
	whole->next = NULL;
	while (!st && (i = next_part(part, n, at)) >= 0) {
		const vn_together_pair *p = &part[i].pair[at[i]++];
		if (strcmp(before, p->name) == 0)
			st = vn_fail(err, VN_ERR_MISMATCH, "%s: holds %s, as another part does", path[i], p->name);
		else
			add_pair(whole, p->name, p);
		before = p->name;
	}
	free(at);
	if (!st && whole->n != part->total)
		st = vn_fail(err, VN_ERR_MISMATCH, "the parts hold %d of %d pairs: a part was cut short", whole->n,
		             part->total);
	return st;
}
