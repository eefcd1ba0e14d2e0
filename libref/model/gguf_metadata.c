/* gguf_metadata.c: the metadata of gguf.h, looked up and read. */
#include "libref/model/gguf_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const vn_gguf_value *vn_gguf_get(const vn_gguf *f, const char *key)
{
	for (size_t lo = 0, hi = f->n_values; lo < hi;) {
		const size_t mid = lo + (hi - lo) / 2;
		const int    order = strcmp(key, f->value[mid].key);
		if (order == 0)
			return &f->value[mid];
		if (order < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

bool vn_gguf_text_at(const vn_gguf_value *v, size_t i, vn_gguf_text *x)
{
	if (!v || v->type != VN_GGUF_STRING || i >= v->n)
		return false;
	*x = v->text[i];
	return true;
}

bool vn_gguf_is(const vn_gguf_value *v, const char *text)
{
	vn_gguf_text t;
	return v && !v->array && vn_gguf_text_at(v, 0, &t) && t.bytes == strlen(text) && memcmp(t.data, text, t.bytes) == 0;
}

#define READ(type, name, i) \
	type name; \
	memcpy(&name, v->data + (i) * sizeof name, sizeof name)

bool vn_gguf_int_at(const vn_gguf_value *v, size_t i, int64_t *x)
{
	if (!v || i >= v->n)
		return false;
	switch (v->type) {
	case VN_GGUF_U8: *x = v->data[i]; return true;
	case VN_GGUF_I8: *x = (int8_t)v->data[i]; return true;
	case VN_GGUF_U16: {
		READ(uint16_t, n, i);
		*x = n;
		return true;
	}
	case VN_GGUF_I16: {
		READ(int16_t, n, i);
		*x = n;
		return true;
	}
	case VN_GGUF_U32: {
		READ(uint32_t, n, i);
		*x = n;
		return true;
	}
	case VN_GGUF_I32: {
		READ(int32_t, n, i);
		*x = n;
		return true;
	}
	case VN_GGUF_I64: {
		READ(int64_t, n, i);
		*x = n;
		return true;
	}
	case VN_GGUF_U64: {
		READ(uint64_t, n, i);
		if (n > INT64_MAX)
			return false;
		*x = (int64_t)n;
		return true;
	}
	case VN_GGUF_F32:
	case VN_GGUF_F64:
	case VN_GGUF_BOOL:
	case VN_GGUF_STRING:
	case VN_GGUF_ARRAY:
	case VN_GGUF_N_TYPES: break;
	}
	return false;
}

bool vn_gguf_bool_at(const vn_gguf_value *v, size_t i, bool *x)
{
	if (!v || v->type != VN_GGUF_BOOL || i >= v->n)
		return false;
	*x = v->data[i] != 0;
	return true;
}

static double shorten_digits(float x)
{
	char text[32];

	if (!isfinite(x))
		return (double)x;
	for (int digits = 1;; digits++) { /* nine always do */
		snprintf(text, sizeof text, "%.*e", digits - 1, (double)x);
		if (digits >= 9 || strtof(text, NULL) == x)
			return strtod(text, NULL);
	}
}

bool vn_gguf_real_at(const vn_gguf_value *v, size_t i, double *x)
{
	int64_t whole;

	if (v && i < v->n && v->type == VN_GGUF_F32) {
		READ(float, n, i);
		*x = shorten_digits(n);
		return true;
	}
	if (v && i < v->n && v->type == VN_GGUF_F64) {
		READ(double, n, i);
		*x = n;
		return true;
	}
	if (!vn_gguf_int_at(v, i, &whole))
		return false;
	*x = (double)whole;
	return true;
}
