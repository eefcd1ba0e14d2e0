/* npy.h: reads the header of a .npy file, versions 1 to 3, and converts its numbers to our layout.
 *
 * The header is a Python literal; only the forms that occur in such headers are accepted. A header
 * that parses states how many bytes of numbers follow, and the file has that many.
 */
#pragma once

#include "libref/base/error.h"
#include "libref/base/tensor.h"

/* How a tensor's numbers are stored. */
typedef struct vn_import_layout {
	/* the format in which they are read; differs from the stored one for quantised blocks and
	 * 8-byte integers */
	vn_dtype    dtype;
	vn_dtype    stored;   /* the format of blocks, else dtype */
	int         width;    /* bytes per stored number; 0 for blocks */
	bool        wide_int; /* 8-byte integers, to be read as i32 */
	bool        swapped;  /* in the other byte order */
	bool        fortran;  /* column-major; the shape is nevertheless that of the tensor */
	/* unsigned integers that may be the bits of a format numpy lacks; their width says which */
	bool        bits;
	/* why its numbers cannot be read, half a line: the format is none of ours. NULL: they can.
	 * Else dtype means nothing. */
	const char *unread;
} vn_import_layout;

typedef struct vn_npy {
	vn_import_layout layout;
	vn_shape         shape;
	size_t           at;    /* offset of the numbers */
	size_t           bytes; /* of the numbers */
} vn_npy;

/* Parses the header. data (bytes): the beginning of a file of `total` bytes, all of it or at least
 * 64 KiB. path: for messages. Numbers of another format (bool, int8, complex, text) are no error:
 * layout.unread says what they are. */
vn_status vn_npy_parse(const char *path, const void *data, size_t bytes, size_t total, vn_npy *npy, vn_error *err);

/* Does format `dtype` agree with what is stored? If `bits` is set, sets the format. */
bool      vn_import_layout_is(vn_import_layout *l, vn_dtype dtype);
bool      vn_import_layout_plain(const vn_import_layout *l); /* no conversion is needed */
/* Computes the stored size of a tensor. Returns false, with 0, if it exceeds an int64. */
bool      vn_import_layout_bytes(const vn_import_layout *l, const vn_shape *shape, size_t *bytes);
/* Converts a tensor from its stored layout to row-major order and this machine's byte order. path,
 * name: for messages. Fails if an integer does not fit an i32. */
vn_status vn_import_layout_read(const char *path, const char *name, const vn_import_layout *l, const vn_shape *shape,
                                const void *from, void *to, vn_error *err);
