/* dump_manifest.c: the manifest of a directory of .npy files: specs/dump.md. */
#include "capture/import/dump.h"

#include "libref/base/alloc.h"
#include "libref/base/json.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest line: a step of 1.4 million tokens, ids and positions of ten digits. Parsed, a line takes
 * up to 25 times as much memory. */
static const size_t MOST_LINE = (size_t)32 << 20;

/* One line of the manifest, with its error. */
typedef struct line {
	vn_dump    *d;
	const char *path;
	int         number;
	json_t     *json;
	vn_error   *err;
	bool        ended; /* a line declared the recording complete */
} line;

__attribute__((format(printf, 2, 3))) static vn_status report_error(const line *l, const char *format, ...)
{
	char    text[VN_ERROR_MAX / 2];
	va_list args;
	va_start(args, format);
	vn_text_print(text, sizeof text, format, args);
	va_end(args);
	return vn_fail(l->err, VN_ERR_FORMAT, "%s:%d: %s", l->path, l->number, text);
}

/* known: the allowed keys of a line, "step|ids|positions". */
static vn_status check_keys(const line *l, const char *known)
{
	const char *key;
	json_t     *value;
	json_object_foreach(l->json, key, value)
	{
		if (!vn_text_is_word(known, key))
			return report_error(l, "unknown key '%.60s'", key);
	}
	return VN_OK;
}

static vn_status text_of(const line *l, const char *key, bool needed, const char **text)
{
	const json_t *x = json_object_get(l->json, key);
	*text = json_string_value(x);
	if ((x && !*text) || (!x && needed))
		return report_error(l, x ? "%s is not a string" : "no %s", key);
	return VN_OK;
}

/* ---- ids ------------------------------------------------------------------------------------ */

/* A list of n numbers, each at least 0, allocated. */
static vn_status numbers_of(const line *l, const char *key, int32_t **list, int64_t *n)
{
	const json_t *x = json_object_get(l->json, key);
	*list = NULL;
	*n = 0;
	if (!x)
		return VN_OK;
	if (!json_is_array(x))
		return report_error(l, "%s is not a list", key);
	const size_t count = json_array_size(x);
	*list = vn_alloc(count, sizeof **list);
	for (size_t i = 0; i < count; i++) {
		const json_t    *e = json_array_get(x, i);
		const json_int_t v = json_integer_value(e);
		if (!json_is_integer(e) || v < 0 || v > INT32_MAX)
			return report_error(l, "%s: number %zu is not from 0 to 2147483647", key, i);
		(*list)[i] = (int32_t)v;
	}
	*n = (int64_t)count;
	return VN_OK;
}

static vn_status read_step(const line *l)
{
	const json_t *number = json_object_get(l->json, "step");
	int32_t      *ids = NULL, *positions = NULL;
	int64_t       n, m;
	vn_status     st = VN_OK;

	if (!json_is_integer(number) || json_integer_value(number) != l->d->n_steps)
		st = report_error(l, "expected step %d next", l->d->n_steps);
	if (!st && !(st = numbers_of(l, "ids", &ids, &n)) && !(st = numbers_of(l, "positions", &positions, &m))) {
		if (n == 0)
			st = report_error(l, "a step without ids");
		else if (positions && m != n)
			st = report_error(l, "%" PRId64 " ids, and %" PRId64 " positions", n, m);
		else if (!(st = vn_dump_step(l->d, n, l->err)))
			st = vn_dump_ids(l->d, ids, positions, n, l->err);
	}
	VN_FREE(ids, positions);
	l->d->has_steps = true;
	return st;
}

/* ---- the run and the model ------------------------------------------------------------------- */

static vn_status read_run(const line *l)
{
	const char *key;
	json_t     *value;
	if (!json_is_object(json_object_get(l->json, "run")))
		return report_error(l, "run is not an object");
	json_object_foreach(json_object_get(l->json, "run"), key, value)
	{
		const char *text = json_string_value(value);
		char        number[32];
		if (json_is_integer(value)) {
			snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
			text = number;
		}
		const char *why = vn_dump_fact_wrong(l->d, key, text);
		if (why)
			return report_error(l, "run: '%.40s' %s", key, why);
		vn_facts_set(&l->d->run, key, "%s", text);
	}
	return VN_OK;
}

static vn_status read_config(const line *l)
{
	const json_t *x = json_object_get(l->json, "config");
	if (l->d->config)
		return report_error(l, "a second config");
	if (!json_is_string(x) && !json_is_object(x))
		return report_error(l, "config is neither an object nor a string that holds one");
	l->d->config = json_is_string(x) ? vn_alloc_text(json_string_value(x))
	                                 : vn_alloc_check(vn_json_dump(x, JSON_COMPACT));
	return VN_OK;
}

/* ---- a tensor -------------------------------------------------------------------------------- */

static vn_status shape_of(const line *l, vn_shape *shape)
{
	const json_t *x = json_object_get(l->json, "shape");
	if (!json_is_array(x) || json_array_size(x) > VN_MAX_RANK)
		return report_error(l, "shape is not a list of up to %d numbers", VN_MAX_RANK);
	shape->rank = (int)json_array_size(x);
	for (int i = 0; i < shape->rank; i++) {
		const json_t *e = json_array_get(x, (size_t)i);
		if (!json_is_integer(e) || json_integer_value(e) < 0)
			return report_error(l, "shape: number %d is not a whole number >= 0", i);
		shape->dim[i] = json_integer_value(e);
	}
	return VN_OK;
}

static vn_status read_tensor(const line *l)
{
	const char *name, *file, *dtype, *dims, *op, *source;
	vn_shape    shape;
	vn_dtype    type;
	char        where[600];
	vn_status   st;

	if ((st = text_of(l, "tensor", true, &name)) || (st = text_of(l, "file", true, &file)) ||
	    (st = text_of(l, "dtype", true, &dtype)) || (st = text_of(l, "dims", false, &dims)) ||
	    (st = text_of(l, "op", false, &op)) || (st = text_of(l, "source_line", false, &source)) ||
	    (st = shape_of(l, &shape)))
		return st;
	if (!vn_dtype_from_name(dtype, &type) || type >= VN_N_DTYPES)
		return report_error(l, "dtype '%.20s' is not one of f16, bf16, f32, f64, i32, f8_e4m3, f8_e5m2", dtype);
	if (!*file || *file == '.' || strchr(file, '/') || strlen(file) > 255)
		return report_error(l, "file '%.60s' is not the name of a file in the directory", file);
	if (source && strlen(source) >= VN_SOURCE_LINE_MAX)
		return report_error(l, "source_line is longer than %d bytes", VN_SOURCE_LINE_MAX - 1);
	if (l->d->n_steps == 0)
		return report_error(l, "a tensor before any step");
	snprintf(where, sizeof where, "%.500s:%d", l->path, l->number);
	vn_array *a = vn_dump_add(l->d, where, name, dims, op, l->err);
	if (!a)
		return VN_ERR_FORMAT;
	a->step = l->d->n_steps - 1;
	a->line = l->number;
	a->layout.dtype = type;
	a->shape = shape;
	a->source_line = source ? vn_alloc_text(source) : NULL;
	a->file = vn_alloc_text(file);
	return VN_OK;
}

/* ---- weights --------------------------------------------------------------------------------- */

static double real_of(const line *l, const char *key)
{
	const json_t *x = json_object_get(l->json, key);
	return json_is_number(x) ? json_number_value(x) : (double)NAN;
}

static int64_t count_of(const line *l, const char *key)
{
	const json_int_t n = json_integer_value(json_object_get(l->json, key));
	return n > 0 ? n : 0;
}

static bool is_digest(const char *text)
{
	return strlen(text) == sizeof((vn_digest *)0)->hex - 1 && strspn(text, "0123456789abcdef") == strlen(text);
}

static vn_status read_weight(const line *l)
{
	const char   *name, *dtype, *digest;
	vn_weight_row w = { .stats = { .min = real_of(l, "min"),
		                           .max = real_of(l, "max"),
		                           .mean = real_of(l, "mean"),
		                           .rms = real_of(l, "rms"),
		                           .nan = count_of(l, "nan"),
		                           .inf = count_of(l, "inf") } };
	vn_status     st;

	if ((st = text_of(l, "weight", true, &name)) || (st = text_of(l, "dtype", true, &dtype)) ||
	    (st = text_of(l, "digest", true, &digest)) || (st = shape_of(l, &w.shape)))
		return st;
	const char *why = vn_dump_name_wrong(name);
	if (why)
		return report_error(l, "weight: the name '%.60s' %s", name, why);
	if (!vn_dtype_from_name(dtype, &w.dtype))
		return report_error(l, "dtype '%.20s' is not one of f16, bf16, f32, f64, i32, f8_e4m3, f8_e5m2", dtype);
	if (!is_digest(digest))
		return report_error(l, "digest '%.40s' is not 32 digits of base 16", digest);
	snprintf(w.digest.hex, sizeof w.digest.hex, "%s", digest);
	w.name = name;
	return vn_dump_weight(l->d, &w, l->err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static vn_status read_line(line *l)
{
	static const struct {
		const char *key, *keys; /* the one that gives the kind; all */
		vn_status (*read)(const line *l);
	} kind[] = {
		{ "tensor", "tensor|file|dtype|shape|dims|op|source_line", read_tensor },
		{ "step", "step|ids|positions", read_step },
		{ "run", "run", read_run },
		{ "config", "config", read_config },
		{ "weight", "weight|dtype|shape|digest|min|max|mean|rms|nan|inf", read_weight },
	};
	const json_t *end = json_object_get(l->json, "complete");
	if (l->ended)
		return report_error(l, "a line after the line 'complete'");
	if (l->number == 1) {
		if (json_integer_value(json_object_get(l->json, "vernier_dump")) != 1)
			return report_error(l, "not a manifest of version 1: the first line is {\"vernier_dump\":1}");
		return VN_OK;
	}
	if (end) {
		if (!json_is_integer(end) || json_integer_value(end) != l->d->n)
			return report_error(l, "complete is not %d, the number of tensors above", l->d->n);
		l->ended = true;
		return VN_OK;
	}
	for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
		if (json_object_get(l->json, kind[i].key)) {
			const vn_status st = check_keys(l, kind[i].keys);
			return st ? st : kind[i].read(l);
		}
	return report_error(l, "expected one of tensor, step, run, config, weight, complete");
}

vn_status vn_manifest_parse(vn_dump *d, const char *path, const char *text, size_t bytes, vn_error *err)
{
	line      l = { .d = d, .path = path, .err = err };
	vn_status st = VN_OK;
	for (const char *at = text, *end = bytes > 0 ? text + bytes : text; !st && at < end;) {
		const char  *stop = memchr(at, '\n', (size_t)(end - at));
		json_error_t why;
		l.number++;
		/* The last line may be cut off, if the program was killed while writing it. */
		if (!stop)
			break;
		if ((size_t)(stop - at) > MOST_LINE)
			st = report_error(&l, "a line of %zu bytes, more than %zu", (size_t)(stop - at), MOST_LINE);
		else if (!(l.json = vn_json_load(at, (size_t)(stop - at), JSON_REJECT_DUPLICATES, &why)))
			st = report_error(&l, "not JSON: %s", why.text);
		else if (!json_is_object(l.json))
			st = report_error(&l, "not an object");
		else
			st = read_line(&l);
		json_decref(l.json);
		l.json = NULL;
		at = stop + 1;
	}
	if (!st && l.number == 0)
		st = vn_fail(err, VN_ERR_FORMAT, "%s: is empty", path);
	d->complete = l.ended;
	return st ? st : vn_dump_sort_weights(d, path, err);
}
