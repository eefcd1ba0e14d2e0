/* members.c: reads values of JSON of a document; see document.h. */
#include "compare/result/document.h"

const char *vn_document_text(const json_t *j)
{
	const char *text = json_string_value(j);
	return text ? text : "";
}

int vn_document_lines(const json_t *lines)
{
	return (int)json_array_size(lines);
}

const char *vn_document_line(const json_t *lines, int i)
{
	return vn_document_text(json_array_get(lines, (size_t)i));
}

const char *vn_document_member(const json_t *object, const char *key)
{
	return vn_document_text(json_object_get(object, key));
}

double vn_document_number(const json_t *object, const char *key)
{
	const json_t *x = json_object_get(object, key);
	return json_is_number(x) ? json_number_value(x)
	                         : vn_json_word_value(vn_document_member(json_object_get(object, "not_finite"), key));
}
