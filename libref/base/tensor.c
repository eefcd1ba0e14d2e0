/* tensor.c: see tensor.h. */
#include "libref/base/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int64_t vn_shape_count(const vn_shape *s)
{
	int64_t n = 1;
	for (int i = 0; i < s->rank; i++)
		n *= s->dim[i];
	return n;
}

bool vn_shape_equal(const vn_shape *a, const vn_shape *b)
{
	if (a->rank != b->rank)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->dim[i] != b->dim[i])
			return false;
	return true;
}

char *vn_shape_text(const vn_shape *s, char *text)
{
	int at = snprintf(text, VN_SHAPE_TEXT, "(");
	for (int i = 0; i < s->rank; i++)
		at += snprintf(text + at, VN_SHAPE_TEXT - (size_t)at, "%s%" PRId64, i ? ", " : "", s->dim[i]);
	snprintf(text + at, VN_SHAPE_TEXT - (size_t)at, ")");
	return text;
}

double vn_tensor_number(const vn_tensor *t, int64_t i)
{
	double x;
	vn_to_f64(&x, (const char *)t->data + (size_t)i * vn_dtype_size(t->dtype), t->dtype, 1);
	return x;
}

void vn_tensor_numbers(const vn_tensor *t, int64_t from, int64_t n, double *x)
{
	vn_to_f64(x, (const char *)t->data + vn_dtype_bytes(t->dtype, (size_t)from), t->dtype, (size_t)n);
}

void vn_tensor_free(vn_tensor *t)
{
	free((void *)(uintptr_t)t->data);
	t->data = NULL;
}
