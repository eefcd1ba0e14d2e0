/* npy.h: the header of a .npy file, versions 1 to 3, and its numbers in our order.
 *
 * The header is a literal of Python; no more of Python is read than such headers have. Whatever opens says how
 * many bytes of numbers there are, and those bytes were there.
 */
#ifndef VN_CAPTURE_NPY_H
#define VN_CAPTURE_NPY_H

#include "libref/base/error.h"
#include "libref/base/tensor.h"

/* How numbers lie where they come from. */
typedef struct vn_laid {
	vn_dtype dtype;    /* as they are read; of blocks (a weight's) and of whole numbers of 8 bytes another than they are stored in */
	vn_dtype stored;   /* the blocks, else dtype */
	int      width;    /* bytes of one as it lies; of blocks 0 */
	bool     wide_int; /* whole numbers of 8 bytes, to be read as i32 */
	bool     swapped;  /* in the other byte order */
	bool     fortran;  /* the first axis is the fastest; the shape is that of the numbers all the same */
	bool     bits;     /* unsigned numbers that may be the bits of a format numpy has not: its width says which could be */
} vn_laid;

typedef struct vn_npy {
	vn_laid  laid;
	vn_shape shape;
	size_t   at;    /* where the numbers begin */
	size_t   bytes; /* of them */
} vn_npy;

/* data (bytes): the beginning of a file that is `total` long: as much as there is, or 64 KiB and more. path: for messages. */
vn_status vn_npy_parse(const char *path, const void *data, size_t bytes, size_t total, vn_npy *npy, vn_error *err);

/* Does the name of a format ("bf16", "f32") agree with what lies there? Where it lies as bits, it says what they are. */
bool      vn_laid_is(vn_laid *l, vn_dtype dtype);
bool      vn_laid_plain(const vn_laid *l); /* they lie as we have them */
/* Bytes of a tensor as it lies; 0 and false where that is more than an int64 has. */
bool      vn_laid_bytes(const vn_laid *l, const vn_shape *shape, size_t *bytes);
/* All of a tensor, from as it lies to as we have it: row-major, this machine's order. path, name: for messages. A whole number
 * that an i32 does not hold is an error. */
vn_status vn_laid_read(const char *path, const char *name, const vn_laid *l, const vn_shape *shape, const void *from, void *to, vn_error *err);

#endif
