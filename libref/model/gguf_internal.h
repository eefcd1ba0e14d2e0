/* gguf_internal.h: shared by the files of gguf.h. */
#pragma once

#include "libref/base/map.h"
#include "libref/model/gguf.h"

struct vn_gguf {
	vn_map          map; /* data NULL: parsed from the caller's memory */
	char           *path;
	size_t          n, n_values;
	vn_gguf_tensor *tensor; /* of all parts, sorted by name. Names belong to their part */
	vn_gguf_value  *value;  /* sorted by key */
	size_t          n_parts;
	vn_gguf       **part; /* from the second file on; their tensors were moved to `tensor` here */
};

extern const size_t vn_gguf_size[VN_GGUF_N_TYPES]; /* bytes of one; of a string: of its length field */

/* Compares two values by key, for qsort and bsearch. */
int vn_gguf_by_key(const void *a, const void *b);

/* Sorts the tensors by name; a duplicate name is an error. */
vn_status vn_gguf_sort(vn_gguf *f, vn_error *err);
