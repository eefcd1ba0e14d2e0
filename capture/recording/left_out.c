/* left_out.c: see left_out.h. */
#include "capture/recording/left_out.h"

#include "libref/base/grow.h"
#include "libref/base/intern.h"
#include "libref/base/json.h"
#include "libref/base/order.h"
#include "libref/base/text.h"
#include "libref/plan/plan.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

char *vn_left_out_line(const vn_left_out *l)
{
	json_t *shape = json_array(), *measures = json_object();

	for (int i = 0; i < l->shape.rank; i++)
		json_array_append_new(shape, json_integer(l->shape.dim[i]));
	for (int i = 0; i < l->n; i++)
		if (isfinite(l->measure[i].value))
			json_object_set_new(measures, l->measure[i].name, json_real(l->measure[i].value));
	VN_OWNED json_t *j = json_pack("{s:i, s:s, s:s, s:o, s:s, s:s, s:o}", "step", l->step, "name", l->name, "dtype",
	                               vn_dtype_name(l->dtype), "shape", shape, "digest", l->digest.hex, "reference",
	                               l->reference.hex, "measured", measures);
	char            *line = vn_json_dump(j, JSON_COMPACT | JSON_REAL_PRECISION(17));
	return line;
}

vn_status vn_left_out_add(vn_left_out_lines *to, const vn_left_out *l, vn_error *err)
{
	if (!VN_GROW(to->line, to->n) || !(to->line[to->n] = vn_left_out_line(l)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for what is left out");
	to->n++;
	return VN_OK;
}

void vn_left_out_lines_finish(vn_left_out_lines *lines)
{
	for (int64_t i = 0; i < lines->n; i++)
		free(lines->line[i]);
	free(lines->line);
	*lines = (vn_left_out_lines) { 0 };
}

static bool read_shape(const json_t *a, vn_shape *s)
{
	int64_t n = 1;

	if (!json_is_array(a) || json_array_size(a) > VN_MAX_RANK)
		return false;
	s->rank = (int)json_array_size(a);
	for (int i = 0; i < s->rank; i++) {
		const json_t *x = json_array_get(a, (size_t)i);
		s->dim[i] = json_is_integer(x) ? json_integer_value(x) : -1;
		if (s->dim[i] < 0 || s->dim[i] > INT64_MAX / 16 / n)
			return false;
		n *= s->dim[i] ? s->dim[i] : 1;
	}
	return true;
}

static bool read_digest(const json_t *x, vn_digest *d)
{
	vn_digest_bytes bytes;

	if (!json_is_string(x) || !vn_digest_pack(json_string_value(x), &bytes))
		return false;
	*d = vn_digest_text(&bytes);
	return true;
}

/* Names that go into messages and lookups: printable, no longer than a checkpoint's. */
static bool read_name(const char *text, const char **name)
{
	if (!text || !*text || strlen(text) >= VN_NAME_MAX)
		return false;
	for (const char *p = text; *p; p++)
		if (vn_text_control(*p) || *p == '/')
			return false;
	return (*name = vn_intern(text)) != NULL;
}

static const char *read_measures(json_t *j, vn_left_out *l)
{
	const char *key;
	json_t     *x;

	if (!json_is_object(j) || json_object_size(j) > VN_MEASURES_MAX)
		return "'measured' is not an object of few numbers";
	if (!(l->measure = calloc(json_object_size(j) + 1, sizeof *l->measure)))
		return "no memory";
	json_object_foreach(j, key, x)
	{
		vn_said_measure *m = &l->measure[l->n++];
		m->value = json_is_number(x) ? json_number_value(x) : (double)NAN;
		if (!isfinite(m->value) || !read_name(key, &m->name))
			return "a measure is not a number";
	}
	return NULL;
}

static const char *read_object(const json_t *j, vn_left_out *l)
{
	const json_t *step = json_object_get(j, "step");
	const char   *dtype = json_string_value(json_object_get(j, "dtype"));

	if (!json_is_object(j))
		return "not an object of JSON";
	if (!json_is_integer(step) || json_integer_value(step) < 0 || json_integer_value(step) > INT_MAX)
		return "'step' is not the number of a step";
	l->step = (int)json_integer_value(step);
	if (!read_name(json_string_value(json_object_get(j, "name")), &l->name))
		return "'name' is not the name of a checkpoint";
	if (!dtype || !vn_dtype_from_name(dtype, &l->dtype) || l->dtype >= VN_N_DTYPES)
		return "'dtype' is not a format of numbers";
	if (!read_shape(json_object_get(j, "shape"), &l->shape))
		return "'shape' is not a shape";
	if (!read_digest(json_object_get(j, "digest"), &l->digest) ||
	    !read_digest(json_object_get(j, "reference"), &l->reference))
		return "'digest' or 'reference' is not a digest";
	return read_measures(json_object_get(j, "measured"), l);
}

const char *vn_left_out_read(const char *line, vn_left_out *l)
{
	*l = (vn_left_out) { 0 };
	json_t     *j = vn_json_parse(line, JSON_REJECT_DUPLICATES);
	const char *why = read_object(j, l);
	json_decref(j);
	if (why)
		vn_left_out_finish(l);
	return why;
}

void vn_left_out_finish(vn_left_out *l)
{
	free(l->measure);
	*l = (vn_left_out) { 0 };
}

VN_ORDER_BY(order_by_name, vn_left_out, VN_ORDER(x->step, y->step), strcmp(x->name, y->name))

void vn_left_out_sort(vn_left_out *list, int n)
{
	if (n > 1)
		qsort(list, (size_t)n, sizeof *list, order_by_name);
}

const vn_left_out *vn_left_out_find(const vn_left_out *list, int n, int step, const char *name)
{
	const vn_left_out key = { .step = step, .name = name };
	return n ? bsearch(&key, list, (size_t)n, sizeof *list, order_by_name) : NULL;
}

double vn_left_out_measure(const vn_left_out *l, const char *name)
{
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->measure[i].name, name) == 0)
			return l->measure[i].value;
	return (double)NAN;
}
