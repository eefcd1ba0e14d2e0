/* together_read.c: reads the outcome of the pairs of two folders, or of several,
 * from JSON; see together.h. */
#include "compare/folders/together_internal.h"

#include "compare/text/json.h"
#include "libref/base/digest.h"
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

/* Of several candidates, the list must be in the order of the sides: then a summary is written as
 * it was read. */
static bool read_holders(const json_t *j, int sides, bool *there)
{
	const char *text = json_string_value(j);
	size_t      n = 0;
	char        letter[2];

	if (sides == 2 && text) {
		there[0] = strcmp(text, "candidate") != 0;
		there[1] = strcmp(text, "reference") != 0;
		return (there[0] && there[1]) == (strcmp(text, "both") == 0);
	}
	for (int s = 0; s < sides; s++) {
		const char *one = json_string_value(json_array_get(j, n));
		there[s] = one && strcmp(one, vn_together_holder(s, letter)) == 0;
		n += there[s];
	}
	return sides > 2 && n > 0 && n == json_array_size(j);
}

/* The status is the worst of the candidates'. null: neither the candidate nor the
 * reference has it. */
static bool read_each(const json_t *list, int sides, const bool *there, int status)
{
	int worst = 0;

	if (sides == 2)
		return !list;
	for (int s = 1; s < sides; s++) {
		const json_t *j = json_array_get(list, (size_t)s - 1);
		const char   *verdict = json_string_value(j);
		int           one = 0;
		if (json_is_null(j) && !there[0] && !there[s])
			continue;
		while (one < 3 && !(verdict && strcmp(verdict, vn_together_verdicts[one]) == 0))
			one++;
		if (one == 3)
			return false;
		worst = one > worst ? one : worst;
	}
	return worst == status && json_array_size(list) == (size_t)sides - 1;
}

/* Each is a text, or null: unknown. */
static bool read_recorders(const json_t *list, int sides)
{
	for (int s = 0; s < sides; s++) {
		const json_t *j = json_array_get(list, (size_t)s);
		if (!json_is_null(j) && !*(json_string_value(j) ? json_string_value(j) : ""))
			return false;
	}
	return json_array_size(list) == (size_t)sides;
}

static bool read_pairs(const json_t *list, int sides)
{
	const char *before = "", *name;
	size_t      i;
	json_t     *p;

	json_array_foreach(list, i, p)
	{
		bool there[VN_MOST_FOLDERS] = { false };
		int  status;
		if (json_object_size(p) != (sides > 2 ? 7 : 6) || !(name = text_of(p, "name")) || !text_of(p, "words") ||
		    !whole_number(p, "status", 0, 2, &status) || !verdict_is(p, status) ||
		    !read_holders(json_object_get(p, "in"), sides, there) ||
		    !read_each(json_object_get(p, "each"), sides, there, status) ||
		    !read_recorders(json_object_get(p, "recorded_by"), sides) || (i && strcmp(before, name) >= 0))
			return false;
		before = name;
	}
	return json_is_array(list);
}

/* The paths of the sides, as they were given. */
static bool read_sides(const json_t *root, vn_together *t)
{
	const json_t *several = json_object_get(root, "candidates");
	const size_t  n = several ? json_array_size(several) : 1;

	if (n >= VN_MOST_FOLDERS || (several && n < 2))
		return false;
	t->sides = (int)n + 1;
	t->side[0] = text_of(root, "reference");
	for (size_t i = 0; i < n; i++)
		t->side[i + 1] = several ? json_string_value(json_array_get(several, i)) : text_of(root, "candidate");
	for (int s = 0; s < t->sides; s++)
		if (!t->side[s])
			return false;
	return true;
}

static bool read_head(const json_t *root, vn_together *t)
{
	const char     *schema = text_of(root, "schema"), *work = text_of(root, "work");
	const json_t   *part = json_object_get(root, "part"), *left = json_object_get(root, "ignored");
	int             n;
	vn_digest_bytes any;

	if (json_object_size(root) != (part ? 10 : 9) || !schema || strcmp(schema, VN_TOGETHER_SCHEMA) != 0 || !work ||
	    !vn_digest_pack(work, &any) || !read_sides(root, t) || !whole_number(root, "total", 0, INT_MAX, &n))
		return false;
	for (int s = 0; s < t->sides; s++) {
		const json_t *of = json_array_get(left, (size_t)s);
		if (!whole_number(of, "folders", 0, INT_MAX, &n) || !whole_number(of, "other_files", 0, INT_MAX, &n))
			return false;
	}
	return !part || (whole_number(part, "of", 1, VN_MOST_PARTS, &n) && whole_number(part, "index", 1, n, &n));
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
		return st;
	t->root = vn_json_load(text, bytes, JSON_REJECT_DUPLICATES, &why);
	free(text);
	if (!t->root)
		return vn_fail(err, VN_ERR_FORMAT, "%s: line %d: %s", path, why.line, why.text);
	t->pairs = json_object_get(t->root, "pairs");
	return read_head(t->root, t) && read_pairs(t->pairs, t->sides) && verdict_is(t->root, vn_together_status(t))
	           ? VN_OK
	           : vn_fail(err, VN_ERR_FORMAT,
	                     "%s: was not written by vernier compare --summary (schema " VN_TOGETHER_SCHEMA ")", path);
}
