/* gguf_internal.h: what the files of gguf.h share among themselves. */
#ifndef VN_LIBREF_MODEL_GGUF_INTERNAL_H
#define VN_LIBREF_MODEL_GGUF_INTERNAL_H

#include "libref/base/map.h"
#include "libref/model/gguf.h"

struct vn_gguf {
	vn_map          map;  /* data NULL when parsed from somebody else's memory */
	char           *path;
	size_t          n, n_values;
	vn_gguf_tensor *tensor; /* sorted by name; of all parts. Names of other parts are theirs */
	vn_gguf_value  *value;  /* sorted by key */
	size_t          n_parts;
	vn_gguf       **part;   /* the second file and on; their tensors have moved to the first */
};

/* Sorts the tensors by name; one name twice is refused. */
vn_status vn_gguf_sort(vn_gguf *f, vn_error *err);

#endif
