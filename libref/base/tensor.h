/* tensor.h: a shape, and a view of numbers in memory.
 *
 * Both are plain values. A view owns nothing: the code that returns one says how long the bytes
 * live. Arrays are row-major, outermost axis first.
 */
#pragma once

#include "libref/base/dtype.h"

#include <stdbool.h>

/* Enough for the caches of all layers in one tensor: layer, keys and values, block, slot, head,
 * dim. */
#define VN_MAX_RANK 6

typedef struct vn_shape {
	int     rank;             /* 0: one element */
	int64_t dim[VN_MAX_RANK]; /* each >= 0 */
} vn_shape;

typedef struct vn_tensor {
	vn_dtype    dtype;
	vn_shape    shape;
	const void *data; /* may be unaligned, in a mapped file */
} vn_tensor;

#define VN_SHAPE_TEXT 128 /* six numbers of 19 digits */

int64_t vn_shape_count(const vn_shape *s); /* elements; product of the dims */
bool    vn_shape_equal(const vn_shape *a, const vn_shape *b);
/* Writes "(17, 6, 8)" to text (VN_SHAPE_TEXT bytes). Returns text. */
char   *vn_shape_text(const vn_shape *s, char *text);

/* Returns element i of a tensor of single numbers. */
double vn_tensor_number(const vn_tensor *t, int64_t i);
/* Writes n elements of such a tensor, from element `from` on, to x. */
void   vn_tensor_numbers(const vn_tensor *t, int64_t from, int64_t n, double *x);

/* Frees the data of a view and sets it to NULL. Only for views whose data belongs to the caller. */
void vn_tensor_free(vn_tensor *t);
