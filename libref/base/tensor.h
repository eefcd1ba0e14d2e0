/* tensor.h: a shape, and a view of numbers in memory.
 *
 * Both are plain values. A view owns nothing: whoever hands one out says how
 * long the bytes live. Arrays are row-major, outermost axis first.
 */
#ifndef VN_LIBREF_BASE_TENSOR_H
#define VN_LIBREF_BASE_TENSOR_H

#include "libref/base/dtype.h"

#include <stdbool.h>

/* Caches of all layers in one: layer, keys and values, block, slot, head, dim. */
#define VN_MAX_RANK 6

typedef struct vn_shape {
	int     rank;             /* 0: one element */
	int64_t dim[VN_MAX_RANK]; /* each >= 0 */
} vn_shape;

typedef struct vn_tensor {
	vn_dtype    dtype;
	vn_shape    shape;
	const void *data; /* may be unaligned when it lies in a mapped file */
} vn_tensor;

#define VN_SHAPE_TEXT 128 /* six numbers of 19 digits */

int64_t vn_shape_count(const vn_shape *s);                     /* elements; product of the dims */
bool    vn_shape_equal(const vn_shape *a, const vn_shape *b);
/* "(17, 6, 8)" into text of VN_SHAPE_TEXT bytes; returns text. */
char   *vn_shape_text(const vn_shape *s, char *text);

/* Frees the data of a view, where whoever made it says that they are the caller's; data is NULL then. */
void    vn_tensor_free(vn_tensor *t);

#endif
