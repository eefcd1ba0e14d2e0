/* json.c: see json.h. */
#include "compare/text/json.h"

#include <math.h>
#include <string.h>

json_t *vn_json_real(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

json_t *vn_json_integers(const int64_t *x, int n)
{
	json_t *a = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(a, json_integer(x[i]));
	return a;
}

json_t *vn_json_letter(char c)
{
	return json_stringn(&c, 1);
}

bool vn_json_print_value(json_t *j, FILE *out, size_t flags)
{
	const bool good = vn_json_print(j, out, flags | JSON_ENCODE_ANY);
	json_decref(j);
	return good;
}

bool vn_json_print_members(json_t *object, FILE *out, size_t flags, const char *end)
{
	const char *key;
	json_t     *value;
	size_t      left = json_object_size(object);
	bool        good = left > 0;
	json_object_foreach(object, key, value)
	{
		fprintf(out, "\"%s\": ", key);
		good = vn_json_print_value(json_incref(value), out, flags) && good;
		fputs(--left ? ",\n" : end, out);
	}
	json_decref(object);
	return good;
}

const char *vn_json_not_finite(double x)
{
	return isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

double vn_json_word_value(const char *word)
{
	return strcmp(word, "inf") == 0 ? (double)INFINITY : strcmp(word, "-inf") == 0 ? -(double)INFINITY : (double)NAN;
}

void vn_json_put_real(json_t *object, const char *key, double x, json_t *flags)
{
	json_object_set_new(object, key, vn_json_real(x));
	if (!isfinite(x))
		json_object_set_new(flags, key, json_string(vn_json_not_finite(x)));
}

void vn_json_put_flags(json_t *object, const char *key, json_t *flags)
{
	if (json_object_size(flags))
		json_object_set_new(object, key, flags);
	else
		json_decref(flags);
}

json_t *vn_json_lines(const vn_lines *l)
{
	json_t *a = json_array();
	for (int i = 0; i < l->n; i++)
		json_array_append_new(a, vn_json_text(l->line[i]));
	return a;
}
