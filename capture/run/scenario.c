/* scenario.c: see scenario.h. */
#include "capture/run/scenario.h"

#include "capture/run/arguments.h"
#include "libref/base/alloc.h"
#include "libref/base/json.h"
#include "libref/base/nearest.h"
#include "libref/base/order.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAME = 200, MOST_DIGITS = 12, LEAST_DIGITS = 3 };

/* The place of a line, for messages. */
typedef struct line_place {
	const char *path;
	int         line;
} line_place;

static vn_status check_name(line_place at, const char *name, vn_error *err)
{
	if (!*name || *name == '.' || strchr(name, '/') || strlen(name) > MOST_NAME)
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s:%d: the name '%.60s' cannot be a file's: it needs 1 to %d bytes, no / and no . at its start",
		               at.path, at.line, name, MOST_NAME);
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return vn_fail(err, VN_ERR_FORMAT, "%s:%d: the name has a control character", at.path, at.line);
	return VN_OK;
}

static vn_status read_ids(line_place at, const json_t *list, vn_scenario *s, vn_error *err)
{
	s->n = (int64_t)json_array_size(list);
	if (!json_is_array(list) || s->n == 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d: ids is not a list of token ids", at.path, at.line);
	s->ids = vn_alloc((size_t)s->n, sizeof *s->ids);
	for (int64_t i = 0; i < s->n; i++) {
		const json_t *id = json_array_get(list, (size_t)i);
		if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
			return vn_fail(err, VN_ERR_FORMAT, "%s:%d: ids: number %lld of the list is not a token id", at.path,
			               at.line, (long long)i + 1);
		s->ids[i] = (int32_t)json_integer_value(id);
	}
	return VN_OK;
}

static vn_status read_whole(line_place at, const char *key, const json_t *x, int64_t most, int64_t *to, vn_error *err)
{
	if (!json_is_integer(x) || json_integer_value(x) < 0 || json_integer_value(x) > most)
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d: %s takes a whole number from 0 to %lld", at.path, at.line, key,
		               (long long)most);
	*to = json_integer_value(x);
	return VN_OK;
}

static vn_status copy_text(line_place at, const char *key, const json_t *x, char **to, vn_error *err)
{
	if (!json_is_string(x))
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d: %s is not a text", at.path, at.line, key);
	*to = vn_alloc_text(json_string_value(x));
	return VN_OK;
}

static vn_status read_key(line_place at, const char *key, const json_t *x, vn_scenario *s, vn_error *err)
{
	vn_nearest near;

	if (strcmp(key, "name") == 0)
		return copy_text(at, key, x, &s->name, err);
	if (strcmp(key, "prompt") == 0)
		return copy_text(at, key, x, &s->text, err);
	if (strcmp(key, "ids") == 0)
		return read_ids(at, x, s, err);
	if (strcmp(key, "decode") == 0)
		return read_whole(at, key, x, INT32_MAX, &s->decode, err);
	if (strcmp(key, "seed") == 0)
		return read_whole(at, key, x, INT64_MAX, &s->seed, err);
	if (strcmp(key, "temperature") == 0) {
		s->temperature = json_number_value(x);
		return json_is_number(x) && s->temperature >= 0 && s->temperature <= 1000
		           ? VN_OK
		           : vn_fail(err, VN_ERR_FORMAT, "%s:%d: temperature takes a number from 0 to 1000", at.path, at.line);
	}
	vn_nearest_start(&near, key);
	vn_nearest_try_words(&near, "name|prompt|ids|decode|temperature|seed");
	return vn_fail(err, VN_ERR_FORMAT, "%s:%d: unknown key '%.60s'%s", at.path, at.line, key, vn_nearest_hint(&near));
}

static vn_status read_object(line_place at, const char *line, size_t bytes, vn_scenario *s, vn_error *err)
{
	json_error_t why;
	json_t      *j = vn_json_load(line, bytes, JSON_REJECT_DUPLICATES, &why), *x;
	vn_status    st = VN_OK;
	const char  *key;

	if (!j)
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d: %s", at.path, at.line, why.text);
	if (!json_is_object(j))
		st = vn_fail(err, VN_ERR_FORMAT, "%s:%d: not an object, such as {\"prompt\": \"Hello\"}", at.path, at.line);
	json_object_foreach(j, key, x) if (!st) st = read_key(at, key, x, s, err);
	json_decref(j);
	if (!st && !s->text == !s->ids)
		st = vn_fail(err, VN_ERR_FORMAT, "%s:%d: %s", at.path, at.line,
		             s->text ? "prompt and ids exclude each other" : "neither prompt nor ids");
	return st;
}

static bool is_blank(const char *line, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (!strchr(" \t\r", line[i]))
			return false;
	return true;
}

VN_ORDER_BY(order_by_name, vn_scenario *const, strcmp((*x)->name, (*y)->name))

static vn_status check_unique(const char *path, const vn_scenario *s, int n, vn_error *err)
{
	VN_FREED const vn_scenario **order = vn_alloc((size_t)n, sizeof *order);
	vn_status                    st = VN_OK;

	for (int i = 0; i < n; i++)
		order[i] = &s[i];
	qsort(order, (size_t)n, sizeof *order, order_by_name);
	for (int i = 1; !st && i < n; i++)
		if (strcmp(order[i - 1]->name, order[i]->name) == 0)
			st = vn_fail(err, VN_ERR_FORMAT, "%s: lines %d and %d have the same name, %s", path, order[i - 1]->line,
			             order[i]->line, order[i]->name);
	return st;
}

/* Gives names to scenarios without one. */
static vn_status name_all(const char *path, vn_scenario *s, int n, vn_error *err)
{
	char      last[MOST_DIGITS];
	const int digits = snprintf(last, sizeof last, "%d", n);
	const int width = digits < LEAST_DIGITS ? LEAST_DIGITS : digits < MOST_DIGITS ? digits : MOST_DIGITS - 1;

	for (int i = 0; i < n; i++) {
		char number[MOST_DIGITS];
		snprintf(number, sizeof number, "%0*d", width, i + 1);
		if (!s[i].name)
			s[i].name = vn_alloc_text(number);
		const vn_status st = check_name((line_place) { path, s[i].line }, s[i].name, err);
		if (st)
			return st;
	}
	return check_unique(path, s, n, err);
}

/* Adds a scenario in which nothing is stated. */
static vn_scenario *add_scenario(vn_scenario **s, int *n, int line)
{
	*s = vn_alloc_grown(*s, (size_t)*n, sizeof **s);
	(*s)[*n] = (vn_scenario) { .line = line, .decode = -1, .temperature = -1, .seed = -1 };
	return &(*s)[(*n)++];
}

static vn_status read_line(line_place at, const char *line, size_t bytes, bool json, vn_scenario *one, vn_error *err)
{
	if (json)
		return read_object(at, line, bytes, one, err);
	one->text = vn_alloc_check(strndup(line, bytes));
	return strlen(one->text) == bytes ? VN_OK : vn_fail(err, VN_ERR_FORMAT, "%s:%d: holds a NUL", at.path, at.line);
}

vn_status vn_scenarios_read(const char *path, vn_scenario **s, int *n, vn_error *err)
{
	char     *text;
	size_t    bytes;
	vn_status st = vn_arguments_read_file(path, &text, &bytes, err);

	*s = NULL;
	*n = 0;
	if (st)
		return st;
	const bool json = text[strspn(text, " \t\r\n")] == '{';
	line_place at = { path, 0 };
	for (const char *p = text, *end = text + bytes; !st && p < end;) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		size_t      length = (size_t)((stop ? stop : end) - p);
		at.line++;
		const size_t own = length - (length && p[length - 1] == '\r');
		if (!is_blank(p, length))
			st = read_line(at, p, own, json, add_scenario(s, n, at.line), err);
		p += length + (stop != NULL);
	}
	free(text);
	if (!st && *n == 0)
		st = vn_fail(err, VN_ERR_USAGE, "%s: holds no prompt", path);
	st = st ? st : name_all(path, *s, *n, err);
	if (st) {
		vn_scenarios_free(*s, *n);
		*s = NULL;
		*n = 0;
	}
	return st;
}

void vn_scenarios_free(vn_scenario *s, int n)
{
	for (int i = 0; i < n; i++)
		VN_FREE(s[i].name, s[i].text, s[i].ids);
	free(s);
}
