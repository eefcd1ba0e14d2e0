/* bulk.h: writes the structure of many datasets and groups of an HDF5 file without HDF5.
 *
 * HDF5 takes a tenth of a millisecond to create a dataset with ten attributes and to link it, of
 * which this takes a thirtieth. The bytes are those that HDF5 1.10 writes for the same objects in
 * format 1.8, with checksums. HDF5 still writes the superblock, the root group and all else.
 *
 * An object is begun, given its attributes, and ended, which returns its address. A group is ended
 * after everything in it. Nothing of the file may refer to the objects before vn_bulk_end; then the
 * caller links one to a group of HDF5's (unnamed).
 *
 * Threads  as HDF5: one at a time.
 * Errors   the first one is kept, and vn_bulk_end returns it; after it, calls do nothing.
 *
 * Source: the HDF5 File Format Specification, version 3.0, III.A.2 (version 2 B-trees), III.E
 * (global heap), III.G (fractal heap), IV.A (object headers).
 */
#pragma once

#include "capture/file/driver.h"
#include "libref/base/tensor.h"

typedef struct vn_bulk vn_bulk;

/* fd, path, d: of the file, and must outlive it. NULL: no memory. */
vn_bulk  *vn_bulk_create(int fd, const char *path, vn_driver *d);
void      vn_bulk_destroy(vn_bulk *b);
/* The first error so far. */
vn_status vn_bulk_status(const vn_bulk *b, vn_error *err);
/* Writes to disk what is not there yet. Objects may be added afterwards. */
vn_status vn_bulk_end(vn_bulk *b, vn_error *err);

/* Returns the place of so many bytes of numbers. vn_bulk_numbers also writes them, with others. */
int64_t vn_bulk_place(vn_bulk *b, size_t bytes);
int64_t vn_bulk_numbers(vn_bulk *b, const void *numbers, size_t bytes);

/* Begin an object. type: of the numbers, as H5Tencode gives it without the first two bytes. at:
 * their place; ignored if there are none. */
void vn_bulk_begin_dataset(vn_bulk *b, const vn_shape *shape, const unsigned char *type, size_t type_bytes, int64_t at,
                           size_t bytes);
/* unnamed: HDF5 will link it, and counts that; else it is in another group. */
void vn_bulk_begin_group(vn_bulk *b, bool unnamed);

/* Attributes of the object that was begun: a 64-bit integer or float, a string of variable
 * length. */
void vn_bulk_put_int(vn_bulk *b, const char *name, int64_t value);
void vn_bulk_put_real(vn_bulk *b, const char *name, double value);
void vn_bulk_put_text(vn_bulk *b, const char *name, const char *text);

/* A link of a group. */
typedef struct vn_bulk_link {
	const char *name; /* at most VN_NAME_MAX - 1 bytes */
	uint64_t    address;
	uint32_t    hash; /* set by vn_bulk_end_group */
} vn_bulk_link;

/* End the object that was begun. Return its address. Links are sorted; if two have the same name,
 * *twice becomes that name. */
uint64_t vn_bulk_end_dataset(vn_bulk *b);
uint64_t vn_bulk_end_group(vn_bulk *b, vn_bulk_link *link, size_t n, const char **twice);
