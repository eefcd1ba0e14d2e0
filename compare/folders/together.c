/* together.c: see together.h. */
#include "compare/folders/together.h"

#include "compare/text/json.h"
#include "libref/base/map.h"
#include "libref/base/shell.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SCHEMA "vernier-folders/1"
static const char *const verdicts[] = { "within", "outside", "trouble" }; /* in JSON */

/* ---- filling ------------------------------------------------------------------------------ */

void vn_together_free(vn_together *t)
{
	for (int i = 0; i < t->n; i++) {
		free(t->pair[i].name);
		free(t->pair[i].words);
	}
	free(t->pair);
	free(t->side[0]);
	free(t->side[1]);
	*t = (vn_together) { .n = 0 };
}

static vn_status no_memory(vn_error *err)
{
	return vn_fail(err, VN_ERR_NOMEM, "no memory for the outcome of two folders");
}

vn_status vn_together_add(vn_together *t, const char *name, const bool there[2], int status, const char *words,
                          vn_error *err)
{
	vn_together_pair *more = realloc(t->pair, ((size_t)t->n + 1) * sizeof *more);

	if (!more)
		return no_memory(err);
	t->pair = more;
	more[t->n] = (vn_together_pair) { strdup(name), { there[0], there[1] }, status, strdup(words) };
	t->n++; /* so that vn_together_free finds both, or one */
	return more[t->n - 1].name && more[t->n - 1].words ? VN_OK : no_memory(err);
}

static vn_status add_sizes(const char *const side[2], const vn_folder_pairs *pairs, int64_t *bytes, vn_error *err)
{
	for (int i = 0; i < pairs->n; i++)
		for (int s = 0; s < 2; s++) {
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
static vn_status digest_work(const vn_folder_pairs *pairs, const int64_t *bytes, const char *asked, vn_digest *work,
                             vn_error *err)
{
	vn_digester *d = vn_digester_create();

	if (!d)
		return no_memory(err);
	vn_digester_add(d, VERNIER_VERSION, sizeof VERNIER_VERSION);
	vn_digester_add(d, asked, strlen(asked) + 1);
	for (int i = 0; i < pairs->n; i++) {
		const vn_folder_pair *p = &pairs->pair[i];
		char                  line[32];
		vn_digester_add(d, p->name, strlen(p->name) + 1);
		const int n = snprintf(line, sizeof line, "%d%d%lld", p->there[0], p->there[1], (long long)bytes[i]);
		vn_digester_add(d, line, (size_t)n + 1);
	}
	*work = vn_digester_finish(d);
	return VN_OK;
}

vn_status vn_together_begin(vn_together *t, const char *ref, const char *cand, const vn_folder_pairs *pairs,
                            vn_part part, const char *asked, bool *mine, int *order, vn_error *err)
{
	const char *const side[2] = { ref, cand };
	int64_t          *bytes = calloc((size_t)pairs->n + 1, sizeof *bytes);
	vn_status         st;

	*t = (vn_together) { .part = part, .total = pairs->n };
	for (int s = 0; s < 2; s++) {
		t->side[s] = strdup(side[s]);
		t->folders[s] = pairs->folders[s];
		t->others[s] = pairs->others[s];
	}
	if (!bytes || !t->side[0] || !t->side[1])
		st = no_memory(err);
	else if (!(st = add_sizes(side, pairs, bytes, err)) && !(st = digest_work(pairs, bytes, asked, &t->work, err)))
		st = vn_part_deal(bytes, pairs->n, part, mine, order, err);
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

void vn_together_text(const vn_together *t, FILE *out)
{
	fputs("== together\n", out);
	if (t->part.of)
		fprintf(out, "part %d of %d: %d of %d pairs\n", t->part.index, t->part.of, t->n, t->total);
	for (int i = 0; i < t->n; i++) {
		const int status = t->pair[i].status;
		fprintf(out, "%-8s %s  %s\n", status == 1 ? "OUTSIDE" : verdicts[status], t->pair[i].name, t->pair[i].words);
	}
	for (int s = 0; s < 2; s++)
		vn_folder_left(t->side[s], t->folders[s], t->others[s], out);
}

/* Who has a pair, in JSON: by whether the reference's folder has it, and whether the candidate's. */
static const char *const holders[2][2] = { { "", "candidate" }, { "reference", "both" } };

/* What a person would type now: the report of the first pair that is not within its limits. */
static json_t *next_commands(const vn_together *t)
{
	json_t *list = json_array();
	char    line[VN_SHELL_LINE] = "vernier compare", path[PATH_MAX];

	for (int i = 0; i < t->n; i++) {
		if (t->pair[i].status == 0 || !t->pair[i].there[0] || !t->pair[i].there[1])
			continue;
		for (int s = 0; s < 2; s++) {
			snprintf(path, sizeof path, "%s/%s", t->side[s], t->pair[i].name);
			vn_shell_add(line, sizeof line, path);
		}
		json_array_append_new(list, vn_json_text(line));
		break;
	}
	return list;
}

static json_t *ignored(const vn_together *t)
{
	json_t *list = json_array();

	for (int s = 0; s < 2; s++)
		json_array_append_new(list, json_pack("{s:i, s:i}", "folders", t->folders[s], "other_files", t->others[s]));
	return list;
}

static json_t *pairs_of(const vn_together *t)
{
	json_t *list = json_array();

	for (int i = 0; i < t->n; i++) {
		const vn_together_pair *p = &t->pair[i];
		json_array_append_new(list, json_pack("{s:o, s:s, s:i, s:s, s:o}", "name", vn_json_text(p->name), "in",
		                                      holders[p->there[0]][p->there[1]], "status", p->status, "verdict",
		                                      verdicts[p->status], "words", vn_json_text(p->words)));
	}
	return list;
}

vn_status vn_together_json(const void *of, FILE *out, vn_error *err)
{
	const vn_together *t = of;
	json_t *j = json_pack("{s:s, s:s, s:o, s:o}", "schema", SCHEMA, "verdict", verdicts[vn_together_status(t)],
	                      "reference", vn_json_text(t->side[0]), "candidate", vn_json_text(t->side[1]));

	if (t->part.of)
		json_object_set_new(j, "part", json_pack("{s:i, s:i}", "index", t->part.index, "of", t->part.of));
	json_object_set_new(j, "work", json_string(t->work.hex));
	json_object_set_new(j, "total", json_integer(t->total));
	json_object_set_new(j, "ignored", ignored(t));
	json_object_set_new(j, "pairs", pairs_of(t));
	json_object_set_new(j, "next", next_commands(t));
	const bool good = vn_json_print(j, out, JSON_INDENT(1)) && fputc('\n', out) != EOF;
	json_decref(j);
	return good ? VN_OK : vn_fail(err, VN_ERR_IO, "the outcome of two folders could not be written");
}

/* ---- reading ------------------------------------------------------------------------------ */

static bool whole_number(const json_t *object, const char *key, int least, int most, int *x)
{
	const json_t *j = json_object_get(object, key);

	if (!json_is_integer(j) || json_integer_value(j) < least || json_integer_value(j) > most)
		return false;
	*x = (int)json_integer_value(j);
	return true;
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* The verdict repeats the status: what does not was changed or damaged. */
static bool verdict_is(const json_t *object, int status)
{
	const char *verdict = text_of(object, "verdict");
	return verdict && strcmp(verdict, verdicts[status]) == 0;
}

static bool read_holders(const char *text, bool there[2])
{
	for (int i = 1; text && i < 4; i++)
		if (strcmp(text, holders[i >> 1][i & 1]) == 0) {
			there[0] = i >> 1;
			there[1] = i & 1;
			return true;
		}
	return false;
}

static vn_status read_pairs(const json_t *list, vn_together *t, bool *good, vn_error *err)
{
	vn_status st = VN_OK;

	*good = json_is_array(list);
	for (size_t i = 0; *good && !st && i < json_array_size(list); i++) {
		const json_t *p = json_array_get(list, i);
		int           status;
		bool          there[2];
		*good = text_of(p, "name") && text_of(p, "words") && whole_number(p, "status", 0, 2, &status) &&
		        verdict_is(p, status) && read_holders(text_of(p, "in"), there) &&
		        (t->n == 0 || strcmp(t->pair[t->n - 1].name, text_of(p, "name")) < 0);
		if (*good)
			st = vn_together_add(t, text_of(p, "name"), there, status, text_of(p, "words"), err);
	}
	return st;
}

static bool read_head(const json_t *root, vn_together *t)
{
	const char     *schema = text_of(root, "schema"), *work = text_of(root, "work");
	const json_t   *part = json_object_get(root, "part"), *left = json_object_get(root, "ignored");
	vn_digest_bytes any;

	if (!schema || strcmp(schema, SCHEMA) != 0 || !work || !vn_digest_pack(work, &any) || !text_of(root, "reference") ||
	    !text_of(root, "candidate") || !whole_number(root, "total", 0, INT_MAX, &t->total))
		return false;
	memcpy(t->work.hex, work, sizeof t->work.hex);
	for (int s = 0; s < 2; s++) {
		const json_t *of = json_array_get(left, (size_t)s);
		if (!whole_number(of, "folders", 0, INT_MAX, &t->folders[s]) ||
		    !whole_number(of, "other_files", 0, INT_MAX, &t->others[s]))
			return false;
	}
	return !part || (whole_number(part, "of", 1, VN_MOST_PARTS, &t->part.of) &&
	                 whole_number(part, "index", 1, t->part.of, &t->part.index));
}

vn_status vn_together_read(const char *path, vn_together *t, vn_error *err)
{
	enum { MOST_BYTES = 1 << 30 };
	char        *text = NULL;
	size_t       bytes = 0;
	json_error_t why;
	bool         good;
	vn_status    st = vn_read_text(path, MOST_BYTES, &text, &bytes, err);

	*t = (vn_together) { .n = 0 };
	if (st)
		return st;
	json_t *root = vn_json_load(text, bytes, JSON_REJECT_DUPLICATES, &why);
	free(text);
	if (!root)
		return vn_fail(err, VN_ERR_FORMAT, "%s: line %d: %s", path, why.line, why.text);
	if ((good = read_head(root, t)) && !(st = read_pairs(json_object_get(root, "pairs"), t, &good, err)) &&
	    (good = good && verdict_is(root, vn_together_status(t)))) {
		t->side[0] = strdup(text_of(root, "reference"));
		t->side[1] = strdup(text_of(root, "candidate"));
		if (!t->side[0] || !t->side[1])
			st = no_memory(err);
	}
	json_decref(root);
	if (!st && !good)
		st = vn_fail(err, VN_ERR_FORMAT, "%s: was not written by vernier compare --summary (schema " SCHEMA ")", path);
	return st;
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
		if (strcmp(part[i].work.hex, part[0].work.hex) != 0 || part[i].total != part[0].total)
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

/* The part with the first name that was not taken yet; at (n): how many pairs were taken from each. */
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
			st = vn_together_add(whole, p->name, p->there, p->status, p->words, err);
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
	for (int s = 0; s < 2; s++) {
		whole->folders[s] = part[0].folders[s];
		whole->others[s] = part[0].others[s];
		if (!(whole->side[s] = strdup(part[0].side[s])))
			return no_memory(err);
	}
	return join_pairs(part, path, n, whole, err);
}
