/* object_header.h: what an HDF5 dataset says of itself, read from the file's own bytes.
 *
 * HDF5 takes some 70 microseconds to open a dataset and read fifteen attributes,
 * and long runs have a hundred thousand of them. Headers of the kind that HDF5
 * writes for such datasets (version 1 or 2, attributes within, numbers in one piece)
 * are read here in a tenth of that. Anything else, damaged ones above all, is left
 * to HDF5, which knows what to make of it: nothing is refused here, and nothing is read
 * that HDF5 would refuse or read otherwise (tests/fuzz/fuzz_object_header.c).
 *
 * Source: the HDF5 File Format Specification, version 3.0, IV.A (object headers
 * and their messages) and III.E (global heap).
 */
#ifndef VN_CAPTURE_OBJECT_HEADER_H
#define VN_CAPTURE_OBJECT_HEADER_H

#include "libref/base/tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An attribute that is looked for, and where it goes in what `to` points to. */
typedef enum vn_said_kind { VN_SAID_TEXT, VN_SAID_WHOLE, VN_SAID_REAL } vn_said_kind;
typedef struct vn_said {
	const char  *name;
	vn_said_kind kind;         /* char[room], int64_t, double */
	size_t       offset, room;
} vn_said;

enum { VN_HEADER_WINDOW = 1 << 16, VN_TYPE_BYTES = 20, VN_MOST_OBJECTS = 2048, VN_COLLECTIONS = 8 };

/* Bytes of the file that were read last. */
typedef struct vn_header_window {
	unsigned char bytes[VN_HEADER_WINDOW];
	uint64_t      at;
	size_t        n;
} vn_header_window;

/* A collection of the global heap, where strings are. HDF5 fills several by turns. */
typedef struct vn_collection {
	uint64_t at;
	uint64_t n;     /* one more than the largest number that was met */
	bool     whole; /* it was read to its end */
	struct { uint32_t from, bytes; } object[VN_MOST_OBJECTS]; /* from 0: none */
} vn_collection;

/* Of a file with 8-byte addresses, counted from its first byte. Zeroed but for fd and bytes. */
typedef struct vn_header_reader {
	int       fd;
	int64_t   bytes;
	vn_header_window header, heap;
	vn_collection collection[VN_COLLECTIONS]; /* those that were looked at last */
	int           turn;
} vn_header_reader;

typedef struct vn_object_header {
	vn_shape      shape;
	unsigned char type[VN_TYPE_BYTES]; /* as H5Tencode has it, without its two bytes in front */
	size_t        type_bytes;
	uint64_t      offset, stored;      /* of the numbers, within the file */
	uint32_t      said;                /* bit i: attribute i of the list was there */
} vn_object_header;

/* The dataset whose header is at `address`; false: HDF5 must look at it, and *to is as good as unset. n <= 32. */
bool vn_object_header_read(vn_header_reader *r, uint64_t address, const vn_said *list, int n, void *to, vn_object_header *h);

#endif
