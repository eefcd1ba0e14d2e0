/* together.c: see together.h. */
#include "compare/folders/together_internal.h"

#include "compare/text/json.h"
#include "libref/base/map.h"
#include "libref/base/say.h"
#include "libref/base/shell.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *const vn_together_verdicts[] = { "within", "outside", "trouble" };
const char *const vn_together_holders[2][2] = { { "", "candidate" }, { "reference", "both" } };

/* ---- filling ------------------------------------------------------------------------------ */

void vn_together_free(vn_together *t)
{
	for (int i = 0; i < t->n; i++) {
		free(t->pair[i].name);
		free(t->pair[i].words);
		for (int s = 0; s < VN_MOST_FOLDERS; s++)
			free(t->pair[i].by[s]);
	}
	free(t->pair);
	for (int s = 0; s < t->sides; s++)
		free(t->side[s]);
	*t = (vn_together) { .n = 0 };
}

static vn_status no_memory(vn_error *err)
{
	return vn_fail(err, VN_ERR_NOMEM, "no memory for the outcome of two folders");
}

vn_status vn_together_add(vn_together *t, const char *name, const bool *there, int status, const char *each,
                          const char *words, const char *const *by, vn_error *err)
{
	vn_together_pair *more = realloc(t->pair, ((size_t)t->n + 1) * sizeof *more);
	bool              good = true;

	if (!more)
		return no_memory(err);
	t->pair = more;
	more[t->n] = (vn_together_pair) { .name = strdup(name), .status = status, .words = strdup(words) };
	memcpy(more[t->n].there, there, (size_t)t->sides * sizeof *there);
	snprintf(more[t->n].each, sizeof more->each, "%s", each);
	for (int s = 0; s < t->sides; s++)
		good = (more[t->n].by[s] = strdup(by[s])) && good;
	t->n++; /* so that vn_together_free finds what was copied */
	return good && more[t->n - 1].name && more[t->n - 1].words ? VN_OK : no_memory(err);
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
static vn_status digest_work(const char *const *side, int sides, const vn_folder_pairs *pairs, const int64_t *bytes,
                             const char *asked, vn_digest *work, vn_error *err)
{
	vn_digester *d = vn_digester_create();

	if (!d)
		return no_memory(err);
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
	*work = vn_digester_finish(d);
	return VN_OK;
}

vn_status vn_together_begin(vn_together *t, const char *const *side, int sides, const vn_folder_pairs *pairs,
                            vn_folder_part part, const char *asked, bool *mine, int *order, vn_error *err)
{
	int64_t  *bytes = calloc((size_t)pairs->n + 1, sizeof *bytes);
	bool      good = bytes != NULL;
	vn_status st;

	*t = (vn_together) { .part = part, .total = pairs->n, .sides = sides };
	for (int s = 0; s < sides; s++) {
		good = (t->side[s] = strdup(side[s])) && good;
		t->folders[s] = pairs->folders[s];
		t->others[s] = pairs->others[s];
	}
	if (!good)
		st = no_memory(err);
	else if (!(st = add_sizes(side, sides, pairs, bytes, err)) &&
	         !(st = digest_work(side, sides, pairs, bytes, asked, &t->work, err)))
		st = vn_folder_part_deal(bytes, pairs->n, part, mine, order, err);
	free(bytes);
	return st;
}

int vn_together_status(const vn_together *t)
{
	int worst = 0;

	for (int i = 0; i < t->n; i++)
		worst = t->pair[i].status > worst ? t->pair[i].status : worst;
	return worst;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Writes who recorded the files of a folder: "  (vernier-ref 1.0, f16; trained weights;
 * 2 files by another)". */
static void say_recorders(const vn_together *t, int side, FILE *out)
{
	const char *first = "";
	int         others = 0;

	for (int i = 0; i < t->n; i++) {
		const char *by = t->pair[i].by[side];
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

/* "candidate A  cands: 5 within, 1 OUTSIDE" */
static void say_candidates(const vn_together *t, FILE *out)
{
	for (int s = 1; s < t->sides; s++) {
		int         count[3] = { 0 };
		const char *before = " ";
		for (int i = 0; i < t->n; i++)
			if (t->sides == 2)
				count[t->pair[i].status]++;
			else if (t->pair[i].each[s - 1] != '-')
				count[t->pair[i].each[s - 1] - '0']++;
		vn_say(out, "candidate %c  %s:", t->sides == 2 ? ' ' : 'A' + s - 1, t->side[s]);
		for (int status = 0; status < 3; status++)
			if (count[status]) {
				vn_say(out, "%s%d %s", before, count[status], status == 1 ? "OUTSIDE" : vn_together_verdicts[status]);
				before = ", ";
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
		const int status = t->pair[i].status;
		vn_say(out, "%-8s %s  %s\n", status == 1 ? "OUTSIDE" : vn_together_verdicts[status], t->pair[i].name,
		       t->pair[i].words);
	}
	say_candidates(t, out);
	for (int s = 0; s < t->sides; s++)
		vn_folder_left(t->side[s], t->folders[s], t->others[s], out);
}

/* The folders that have the file. With several candidates, a list: "reference", "A", "C". */
static json_t *who_has(const vn_together *t, const vn_together_pair *p)
{
	if (t->sides == 2)
		return json_string(vn_together_holders[p->there[0]][p->there[1]]);
	json_t *list = json_array();
	for (int s = 0; s < t->sides; s++)
		if (p->there[s])
			json_array_append_new(list,
			                      s ? json_stringn((char[]) { (char)('A' + s - 1) }, 1) : json_string("reference"));
	return list;
}

static bool was_compared(const vn_together *t, const vn_together_pair *p)
{
	for (int s = 1; s < t->sides; s++)
		if (p->there[0] && p->there[s])
			return true;
	return false;
}

/* What a person would type now: the report of the first pair that is not within its limits. */
static json_t *next_commands(const vn_together *t)
{
	json_t *list = json_array();
	char    line[VN_SHELL_LINE] = "vernier compare", path[PATH_MAX];

	for (int i = 0; i < t->n; i++) {
		if (t->pair[i].status == 0 || !was_compared(t, &t->pair[i]))
			continue;
		for (int s = 0; s < t->sides; s++) {
			if (!t->pair[i].there[s])
				continue;
			snprintf(path, sizeof path, "%s/%s", t->side[s], t->pair[i].name);
			vn_shell_add(line, sizeof line, path);
		}
		if (*line) /* it had room for all paths */
			json_array_append_new(list, vn_json_text(line));
		break;
	}
	return list;
}

static json_t *ignored_json(const vn_together *t)
{
	json_t *list = json_array();

	for (int s = 0; s < t->sides; s++)
		json_array_append_new(list, json_pack("{s:i, s:i}", "folders", t->folders[s], "other_files", t->others[s]));
	return list;
}

static json_t *each_of(const vn_together_pair *p)
{
	json_t *list = json_array();
	for (const char *one = p->each; *one; one++)
		json_array_append_new(list, *one == '-' ? json_null() : json_string(vn_together_verdicts[*one - '0']));
	return list;
}

static json_t *recorders_of(const vn_together *t, const vn_together_pair *p)
{
	json_t *list = json_array();
	for (int s = 0; s < t->sides; s++)
		json_array_append_new(list, *p->by[s] ? vn_json_text(p->by[s]) : json_null());
	return list;
}

static json_t *pairs_of(const vn_together *t)
{
	json_t *list = json_array();

	for (int i = 0; i < t->n; i++) {
		const vn_together_pair *p = &t->pair[i];
		json_t *j = json_pack("{s:o, s:o, s:i, s:s}", "name", vn_json_text(p->name), "in", who_has(t, p), "status",
		                      p->status, "verdict", vn_together_verdicts[p->status]);
		if (t->sides > 2)
			json_object_set_new(j, "each", each_of(p));
		json_object_set_new(j, "words", vn_json_text(p->words));
		json_object_set_new(j, "recorded_by", recorders_of(t, p));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *candidates_of(const vn_together *t)
{
	json_t *list = json_array();
	for (int s = 1; s < t->sides; s++)
		json_array_append_new(list, vn_json_text(t->side[s]));
	return list;
}

vn_status vn_together_json(const vn_together *t, FILE *out, vn_error *err)
{
	const char *verdict = vn_together_verdicts[vn_together_status(t)];
	json_t     *j = json_pack("{s:s, s:s, s:o}", "schema", VN_TOGETHER_SCHEMA, "verdict", verdict, "reference",
	                          vn_json_text(t->side[0]));

	if (t->sides == 2)
		json_object_set_new(j, "candidate", vn_json_text(t->side[1]));
	else
		json_object_set_new(j, "candidates", candidates_of(t));
	if (t->part.of)
		json_object_set_new(j, "part", json_pack("{s:i, s:i}", "index", t->part.index, "of", t->part.of));
	json_object_set_new(j, "work", json_string(t->work.hex));
	json_object_set_new(j, "total", json_integer(t->total));
	json_object_set_new(j, "ignored", ignored_json(t));
	json_object_set_new(j, "pairs", pairs_of(t));
	json_object_set_new(j, "next", next_commands(t));
	const bool good = vn_json_print(j, out, JSON_INDENT(1)) && fputc('\n', out) != EOF;
	json_decref(j);
	return good ? VN_OK : vn_fail(err, VN_ERR_IO, "the outcome of two folders could not be written");
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

static vn_status check_parts(const vn_together *part, const char *const *path, int n, vn_error *err)
{
	for (int i = 0; i < n; i++) {
		if (part[i].part.of == 0)
			return vn_fail(err, VN_ERR_MISMATCH, "%s: is whole, not a part: there is nothing to join", path[i]);
		if (part[i].part.of != part[0].part.of)
			return vn_fail(err, VN_ERR_MISMATCH, "%s is one of %d parts, %s one of %d", path[i], part[i].part.of,
			               path[0], part[0].part.of);
		if (strcmp(part[i].work.hex, part[0].work.hex) != 0 || part[i].total != part[0].total ||
		    part[i].sides != part[0].sides)
			return vn_fail(err, VN_ERR_MISMATCH,
			               "%s is a part of another comparison than %s: of other files, with other "
			               "options, or by another version of vernier",
			               path[i], path[0]);
		const int same = part_number(part, n, part[i].part.index);
		if (same != i)
			return vn_fail(err, VN_ERR_MISMATCH, "%s and %s are the same part, %d of %d", path[same], path[i],
			               part[i].part.index, part[i].part.of);
	}
	for (int index = 1; index <= part[0].part.of; index++)
		if (part_number(part, n, index) < 0)
			return vn_fail(err, VN_ERR_MISMATCH, "part %d of %d is missing: run the same command with --part %d/%d",
			               index, part[0].part.of, index, part[0].part.of);
	return VN_OK;
}

/* The part with the first name that was not taken yet; at (n): how many pairs were
 * taken from each. */
static int next_part(const vn_together *part, int n, const int *at)
{
	int first = -1;

	for (int i = 0; i < n; i++)
		if (at[i] < part[i].n && (first < 0 || strcmp(part[i].pair[at[i]].name, part[first].pair[at[first]].name) < 0))
			first = i;
	return first;
}

static vn_status join_pairs(const vn_together *part, const char *const *path, int n, vn_together *whole, vn_error *err)
{
	int      *at = calloc((size_t)n, sizeof *at), i;
	vn_status st = at ? VN_OK : no_memory(err);

	while (!st && (i = next_part(part, n, at)) >= 0) {
		const vn_together_pair *p = &part[i].pair[at[i]++];
		if (whole->n && strcmp(whole->pair[whole->n - 1].name, p->name) == 0)
			st = vn_fail(err, VN_ERR_MISMATCH, "%s: holds %s, as another part does", path[i], p->name);
		else
			st = vn_together_add(whole, p->name, p->there, p->status, p->each, p->words, (const char *const *)p->by,
			                     err);
	}
	free(at);
	if (!st && whole->n != whole->total)
		st = vn_fail(err, VN_ERR_MISMATCH, "the parts hold %d of %d pairs: a part was cut short", whole->n,
		             whole->total);
	return st;
}

vn_status vn_together_join(const vn_together *part, const char *const *path, int n, vn_together *whole, vn_error *err)
{
	vn_status st = check_parts(part, path, n, err);

	*whole = (vn_together) { .n = 0 };
	if (st)
		return st;
	whole->work = part[0].work;
	whole->total = part[0].total;
	whole->sides = part[0].sides;
	for (int s = 0; s < whole->sides; s++) {
		whole->folders[s] = part[0].folders[s];
		whole->others[s] = part[0].others[s];
		if (!(whole->side[s] = strdup(part[0].side[s])))
			return no_memory(err);
	}
	return join_pairs(part, path, n, whole, err);
}
