/* together_read.c: reads the outcome of the pairs of two folders, or of several,
 * from JSON; see together.h. */
#include "compare/folders/together_internal.h"

#include "compare/text/json.h"
#include "libref/base/map.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

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
	return verdict && strcmp(verdict, vn_together_verdicts[status]) == 0;
}

/* The side of a list of holders: 0 for the reference, 1 for candidate A; -1: neither. */
static int side_named(const char *name)
{
	if (strcmp(name, "reference") == 0)
		return 0;
	return *name >= 'A' && !name[1] ? *name - 'A' + 1 : -1;
}

/* Of several candidates, the list must be in the order of who_has: then a summary is
 * written as it was read. */
static bool read_holders(const json_t *j, int sides, bool *there)
{
	const char *text = json_string_value(j);
	for (int i = 1; sides == 2 && text && i < 4; i++)
		if (strcmp(text, vn_together_holders[i >> 1][i & 1]) == 0) {
			there[0] = i >> 1;
			there[1] = i & 1;
			return true;
		}
	int last = -1;
	for (size_t i = 0; i < json_array_size(j); i++) {
		const char *one = json_string_value(json_array_get(j, i));
		const int   s = one ? side_named(one) : -1;
		if (s <= last || s >= sides || (s == 0 && last >= 0))
			return false;
		there[last = s] = true;
	}
	return sides > 2 && last >= 0;
}

/* The status is the worst of the candidates'. null: neither the candidate nor the
 * reference has it. */
static bool read_each(const json_t *list, int sides, const bool *there, int status, char *each)
{
	int worst = 0;

	if (sides == 2)
		return true;
	for (int s = 1; s < sides; s++) {
		const json_t *j = json_array_get(list, (size_t)s - 1);
		const char   *verdict = json_string_value(j);
		int           one = 0;
		each[s - 1] = '-';
		if (json_is_null(j) && !there[0] && !there[s])
			continue;
		while (one < 3 && !(verdict && strcmp(verdict, vn_together_verdicts[one]) == 0))
			one++;
		if (one == 3)
			return false;
		each[s - 1] = (char)('0' + one);
		worst = one > worst ? one : worst;
	}
	return worst == status && json_array_size(list) == (size_t)sides - 1;
}

/* Each is a text, or null: unknown. */
static bool read_recorders(const json_t *list, int sides, const char **by)
{
	for (int s = 0; s < sides; s++) {
		const json_t *j = json_array_get(list, (size_t)s);
		by[s] = json_is_null(j) ? "" : json_string_value(j);
		if (!by[s])
			return false;
	}
	return json_array_size(list) == (size_t)sides;
}

static vn_status read_pairs(const json_t *list, vn_together *t, bool *good, vn_error *err)
{
	vn_status st = VN_OK;

	*good = json_is_array(list);
	for (size_t i = 0; *good && !st && i < json_array_size(list); i++) {
		const json_t *p = json_array_get(list, i);
		int           status;
		bool          there[VN_MOST_FOLDERS] = { false };
		char          each[VN_MOST_FOLDERS] = "";
		const char   *by[VN_MOST_FOLDERS];
		*good = text_of(p, "name") && text_of(p, "words") && whole_number(p, "status", 0, 2, &status) &&
		        verdict_is(p, status) && read_holders(json_object_get(p, "in"), t->sides, there) &&
		        read_each(json_object_get(p, "each"), t->sides, there, status, each) &&
		        read_recorders(json_object_get(p, "recorded_by"), t->sides, by) &&
		        (t->n == 0 || strcmp(t->pair[t->n - 1].name, text_of(p, "name")) < 0);
		if (*good)
			st = vn_together_add(t, text_of(p, "name"), there, status, each, text_of(p, "words"), by, err);
	}
	return st;
}

/* Returns the path of a side, as it was given; NULL: there is none. */
static const char *side_of(const json_t *root, int side)
{
	const json_t *several = json_object_get(root, "candidates");
	return side == 0 ? text_of(root, "reference")
	       : several ? json_string_value(json_array_get(several, (size_t)side - 1))
	                 : text_of(root, "candidate");
}

/* How many sides; their paths are copied when all else was read. */
static bool read_sides(const json_t *root, vn_together *t)
{
	const json_t *several = json_object_get(root, "candidates");
	const size_t  n = several ? json_array_size(several) : 1;
	bool          good = several ? n > 1 && n < VN_MOST_FOLDERS : true;

	for (int s = 0; good && s <= (int)n; s++)
		good = side_of(root, s) != NULL;
	t->sides = good ? (int)n + 1 : 0;
	return good;
}

static bool read_head(const json_t *root, vn_together *t)
{
	const char     *schema = text_of(root, "schema"), *work = text_of(root, "work");
	const json_t   *part = json_object_get(root, "part"), *left = json_object_get(root, "ignored");
	vn_digest_bytes any;

	if (!schema || strcmp(schema, VN_TOGETHER_SCHEMA) != 0 || !work || !vn_digest_pack(work, &any) ||
	    !text_of(root, "reference") || !read_sides(root, t) || !whole_number(root, "total", 0, INT_MAX, &t->total))
		return false;
	memcpy(t->work.hex, work, sizeof t->work.hex);
	for (int s = 0; s < t->sides; s++) {
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
		for (int s = 0; s < t->sides && !st; s++)
			if (!(t->side[s] = strdup(side_of(root, s))))
				st = vn_fail(err, VN_ERR_NOMEM, "no memory for the outcome of two folders");
	}
	json_decref(root);
	if (!st && !good)
		st = vn_fail(err, VN_ERR_FORMAT,
		             "%s: was not written by vernier compare --summary (schema " VN_TOGETHER_SCHEMA ")", path);
	return st;
}
