/* arguments.c: see arguments.h. */
#include "capture/run/arguments.h"

#include "libref/base/alloc.h"
#include "libref/base/json.h"
#include "libref/base/map.h"
#include "libref/base/system.h"
#include "libref/base/text.h"
#include "libref/model/other_format.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longest file of token ids or text, beyond any context length. */
static const size_t MOST_TEXT = (size_t)64 << 20;

vn_status vn_arguments_read_range(const char *what, const char *text, int64_t *first, int64_t *last, vn_error *err)
{
	const char *end = isdigit((unsigned char)*text) ? vn_text_digits(text, first) : NULL;

	*last = end ? *first : 0;
	if (end && *end == '-')
		end = isdigit((unsigned char)end[1]) ? vn_text_digits(end + 1, last) : NULL;
	if (!end || *end || *first > INT32_MAX || *last > INT32_MAX)
		return vn_fail(err, VN_ERR_USAGE, "%s takes a range like 0-3 or a number, not '%s'", what, text);
	if (*first > *last)
		return vn_fail(err, VN_ERR_USAGE, "%s takes the smaller number first, not '%s'", what, text);
	return VN_OK;
}

/* Length of the word at text, for an error message. */
static int find_word(const char *text)
{
	size_t n = strcspn(text, ", \t\r\n");
	return n > 40 ? 40 : (int)n;
}

static const char blanks[] = " \t\r\n";

/* Reports a word that is no id, as item n of the list. */
static vn_status not_an_id(const char *where, const char *text, int64_t n, vn_error *err)
{
	struct stat s;
	const bool  file = n == 1 && strncmp(where, "--", 2) == 0 && stat(text, &s) == 0;
	const char *end = strrchr(text, '.');

	if (file && end && (strcmp(end, ".h5") == 0 || strcmp(end, ".hdf5") == 0))
		return vn_fail(err, VN_ERR_USAGE, "%s: %.200s is a recording: %s-from %.200s takes its tokens", where, text,
		               where, text);
	return vn_fail(err, VN_ERR_USAGE, "%s: '%.*s' is not a token id (number %" PRId64 " of the list)%s%.200s%s", where,
	               find_word(text), text, n, file ? "; write @" : "", file ? text : "", file ? " to read a file" : "");
}

static vn_status check_id(const char *where, int64_t id, int64_t n, vn_error *err)
{
	return id >= 0 && id <= INT32_MAX
	           ? VN_OK
	           : vn_fail(err, VN_ERR_USAGE, "%s: token id %" PRId64 " is %s (number %" PRId64 " of the list)", where,
	                     id, id < 0 ? "negative" : "too large for any vocabulary", n);
}

/* where: "--ids" or the file. */
static vn_status read_list(const char *where, const char *text, int32_t **ids, int64_t *n, vn_error *err)
{
	const char *p = text;
	bool        comma = false; /* an id must follow */

	for (p += strspn(p, blanks); *p; p += strspn(p, blanks)) {
		int64_t     id;
		const char *end = vn_text_digits(p, &id);
		vn_status   st;
		if (!end || (*end && *end != ',' && !strchr(blanks, *end)))
			return not_an_id(where, p, *n + 1, err);
		if ((st = check_id(where, id, *n + 1, err)))
			return st;
		*ids = vn_alloc_grown(*ids, (size_t)*n, sizeof **ids);
		(*ids)[(*n)++] = (int32_t)id;
		p = end + strspn(end, blanks);
		comma = *p == ',';
		p += comma;
	}
	if (*n == 0)
		return vn_fail(err, VN_ERR_USAGE, "%s: no token ids: a run needs at least one", where);
	if (comma)
		return vn_fail(err, VN_ERR_USAGE, "%s: a token id is missing after the last comma", where);
	return VN_OK;
}

/* Finds the array of ids in a JSON value; NULL: none. */
static const json_t *find_array(const json_t *j)
{
	static const char *const key[] = { "token_ids", "input_ids", "ids" };

	for (size_t i = 0; json_is_object(j) && i < sizeof key / sizeof *key; i++)
		if (json_object_get(j, key[i]))
			j = json_object_get(j, key[i]);
	if (json_array_size(j) == 1 && json_is_array(json_array_get(j, 0)))
		j = json_array_get(j, 0);
	return json_is_array(j) ? j : NULL;
}

static vn_status copy_array(const char *where, const json_t *list, int32_t **ids, int64_t *n, vn_error *err)
{
	const int64_t count = (int64_t)json_array_size(list);
	vn_status     st = VN_OK;

	if (count == 0)
		return vn_fail(err, VN_ERR_USAGE, "%s: no token ids: a run needs at least one", where);
	*ids = vn_alloc_zero((size_t)count, sizeof **ids);
	for (*n = 0; !st && *n < count; (*n)++) {
		const json_t *one = json_array_get(list, (size_t)*n);
		if (!json_is_integer(one))
			return vn_fail(err, VN_ERR_USAGE, "%s: number %" PRId64 " of the JSON array is not a token id", where,
			               *n + 1);
		st = check_id(where, json_integer_value(one), *n + 1, err);
		(*ids)[*n] = (int32_t)json_integer_value(one);
	}
	return st;
}

static vn_status copy_rows(const char *where, const json_t *list, int32_t **ids, int64_t *n, vn_error *err)
{
	const size_t rows = json_array_size(list), columns = json_array_size(json_array_get(list, 0));

	*n = (int64_t)(rows * columns);
	if (columns == 0)
		return vn_fail(err, VN_ERR_USAGE, "%s: no token ids: a run needs at least one", where);
	*ids = vn_alloc_zero(rows * columns, sizeof **ids);
	for (size_t r = 0; r < rows; r++) {
		const json_t *row = json_array_get(list, r);
		if (json_array_size(row) != columns)
			return vn_fail(err, VN_ERR_USAGE, "%s: row %zu has %zu numbers, row 0 has %zu; -1 is padding", where, r,
			               json_array_size(row), columns);
		for (size_t i = 0; i < columns; i++) {
			const json_t *one = json_array_get(row, i);
			if (!json_is_integer(one) || json_integer_value(one) < -1 || json_integer_value(one) > INT32_MAX)
				return vn_fail(err, VN_ERR_USAGE, "%s: number %zu of row %zu is not a token id, nor -1 for padding",
				               where, i + 1, r);
			(*ids)[r * columns + i] = (int32_t)json_integer_value(one);
		}
	}
	return VN_OK;
}

/* rows NULL: several rows are refused. */
static vn_status read_json(const char *where, const char *text, int32_t **ids, int64_t *n, int64_t *rows, vn_error *err)
{
	json_error_t     why;
	VN_OWNED json_t *j = vn_json_load(text, strlen(text), JSON_REJECT_DUPLICATES, &why);
	const json_t    *list = find_array(j);
	vn_status        st;

	if (!j) {
		st = vn_fail(err, VN_ERR_FORMAT, "%s: this JSON cannot be read, line %d: %.200s", where, why.line, why.text);
	} else if (!list) {
		st = vn_fail(err, VN_ERR_FORMAT,
		             "%s: this JSON has no array of token ids, nor one named token_ids, input_ids or ids", where);
	} else if (rows && json_array_size(list) > 1 && json_is_array(json_array_get(list, 0))) {
		*rows = (int64_t)json_array_size(list);
		st = copy_rows(where, list, ids, n, err);
	} else {
		st = copy_array(where, list, ids, n, err);
	}
	return st;
}

/* Reads a pipe to its end: /dev/stdin, a process substitution or a terminal. */
static vn_status read_stream(const char *path, char **text, size_t *bytes, vn_error *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t    room = 0;
	ssize_t   n = 1;
	vn_status st = fd < 0 ? vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno)) : VN_OK;

	*text = NULL;
	*bytes = 0;
	while (!st && n > 0) {
		if (*bytes + 1 >= room) {
			room = room ? 2 * room : 65536;
			*text = vn_alloc_resized(*text, room, 1);
		}
		VN_UNINTERRUPTED(n, read(fd, *text + *bytes, room - 1 - *bytes));
		if (n < 0)
			st = vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
		else if ((*bytes += (size_t)n) > MOST_TEXT)
			st = vn_fail(err, VN_ERR_FORMAT, "%s: more than the %zu bytes such a file may have", path, MOST_TEXT);
	}
	if (fd >= 0)
		close(fd);
	if (st) {
		free(*text);
		*text = NULL;
	} else {
		(*text)[*bytes] = '\0';
	}
	return st;
}

vn_status vn_arguments_read_file(const char *path, char **text, size_t *bytes, vn_error *err)
{
	struct stat s;
	if (!*path)
		return vn_fail(err, VN_ERR_USAGE, "the name of a file is missing behind '@'");
	const bool stream = stat(path, &s) == 0 && (S_ISFIFO(s.st_mode) || S_ISCHR(s.st_mode));
	vn_status  st = VN_OK;
	return stream                            ? read_stream(path, text, bytes, err)
	       : (st = vn_other_text(path, err)) ? st
	                                         : vn_read_text(path, MOST_TEXT, text, bytes, err);
}

vn_status vn_arguments_read_ids(const char *what, const char *text, int32_t **ids, int64_t *n, vn_error *err)
{
	return vn_arguments_read_rows(what, text, ids, n, NULL, err);
}

vn_status vn_arguments_read_rows(const char *what, const char *text, int32_t **ids, int64_t *n, int64_t *rows,
                                 vn_error *err)
{
	char     *content = NULL;
	size_t    bytes = strlen(text);
	vn_status st = *text == '@' ? vn_arguments_read_file(text + 1, &content, &bytes, err) : VN_OK;

	*ids = NULL;
	*n = 0;
	if (rows)
		*rows = 0;
	if (st)
		return st;
	const char *at = content ? content : text, *where = content ? text + 1 : what;
	const char  first = at[strspn(at, blanks)];
	st = strlen(at) != bytes ? vn_fail(err, VN_ERR_FORMAT, "%s: not a list of token ids: it holds a zero byte", where)
	     : first == '[' || first == '{' ? read_json(where, at, ids, n, rows, err)
	                                    : read_list(where, at, ids, n, err);
	free(content);
	if (st) {
		free(*ids);
		*ids = NULL;
	}
	return st;
}

vn_status vn_take_precision(const char *value, const char **whole, const char **part, int *n, int most, vn_error *err)
{
	const bool some = strchr(value, '@') != NULL;
	if (!some && *whole)
		return vn_fail(err, VN_ERR_USAGE, "--precision is given twice");
	if (some && *n == most)
		return vn_fail(err, VN_ERR_USAGE, "--precision can be given at most %d times", most);
	if (some)
		part[(*n)++] = value;
	else
		*whole = value;
	return VN_OK;
}
