/* gguf_metadata.c: the metadata of gguf.h, looked up and read. */
#include "libref/model/gguf_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const size_t vn_gguf_size[VN_GGUF_N_TYPES] = {
	[VN_GGUF_U8] = 1,     [VN_GGUF_I8] = 1,  [VN_GGUF_U16] = 2, [VN_GGUF_I16] = 2,
	[VN_GGUF_U32] = 4,    [VN_GGUF_I32] = 4, [VN_GGUF_F32] = 4, [VN_GGUF_BOOL] = 1,
	[VN_GGUF_STRING] = 8, [VN_GGUF_U64] = 8, [VN_GGUF_I64] = 8, [VN_GGUF_F64] = 8,
};

int vn_gguf_by_key(const void *a, const void *b)
{
	return strcmp(((const vn_gguf_value *)a)->key, ((const vn_gguf_value *)b)->key);
}

const vn_gguf_value *vn_gguf_get(const vn_gguf *f, const char *key)
{
	const vn_gguf_value wanted = { .key = key };
	return f->n_values ? bsearch(&wanted, f->value, f->n_values, sizeof wanted, vn_gguf_by_key) : NULL;
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

/* Copies element i, of at most `room` bytes, little-endian like this machine. False: there is
 * none. */
static bool read_element(const vn_gguf_value *v, size_t i, void *x, size_t room)
{
	if (!v || i >= v->n || v->type == VN_GGUF_STRING || vn_gguf_size[v->type] > room)
		return false;
	memcpy(x, v->data + i * vn_gguf_size[v->type], vn_gguf_size[v->type]);
	return true;
}

bool vn_gguf_int_at(const vn_gguf_value *v, size_t i, int64_t *x)
{
	uint64_t n = 0;

	if (!read_element(v, i, &n, sizeof n))
		return false;
	switch (v->type) {
	case VN_GGUF_I8: *x = (int8_t)n; return true;
	case VN_GGUF_I16: *x = (int16_t)n; return true;
	case VN_GGUF_I32: *x = (int32_t)n; return true;
	case VN_GGUF_U8:
	case VN_GGUF_U16:
	case VN_GGUF_U32:
	case VN_GGUF_U64:
		if (n > INT64_MAX)
			return false;
		*x = (int64_t)n;
		return true;
	case VN_GGUF_I64: *x = (int64_t)n; return true;
	default: return false;
	}
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
	float   single;

	if (v && v->type == VN_GGUF_F64)
		return read_element(v, i, x, sizeof *x);
	if (v && v->type == VN_GGUF_F32) {
		if (!read_element(v, i, &single, sizeof single))
			return false;
		*x = shorten_digits(single);
		return true;
	}
	if (!vn_gguf_int_at(v, i, &whole))
		return false;
	*x = (double)whole;
	return true;
}
