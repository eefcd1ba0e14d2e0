/* object_header.h: reads the description of an HDF5 dataset from the file's own bytes, without
 * HDF5.
 *
 * HDF5 takes some 70 microseconds to open a dataset and read fifteen attributes, and long runs have
 * a hundred thousand datasets. Headers as HDF5 writes them for such datasets (version 1 or 2,
 * attributes inside, contiguous data) are read here in a tenth of that time. Anything else, damaged
 * headers above all, is left to HDF5. Nothing is refused here, and nothing is read that HDF5 would
 * refuse or read differently (tests/fuzz/fuzz_object_header.c).
 *
 * Source: the HDF5 File Format Specification, version 3.0, IV.A (object headers and their messages)
 * and III.E (global heap).
 */
#pragma once

#include "libref/base/tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An attribute to look for, and where to store it in the struct that `to` points to. */
typedef enum vn_header_attribute_kind {
	VN_ATTRIBUTE_TEXT,
	VN_ATTRIBUTE_WHOLE,
	VN_ATTRIBUTE_REAL
} vn_header_attribute_kind;
typedef struct vn_header_attribute {
	const char              *name;
	vn_header_attribute_kind kind; /* char[room], int64_t, double */
	size_t                   offset, room;
} vn_header_attribute;

enum { VN_HEADER_WINDOW = 1 << 16, VN_TYPE_BYTES = 20, VN_MOST_OBJECTS = 2048, VN_COLLECTIONS = 8 };

/* The part of the file that was read last. */
typedef struct vn_header_window {
	unsigned char bytes[VN_HEADER_WINDOW];
	uint64_t      at;
	size_t        n;
} vn_header_window;

/* A collection of the global heap, which holds strings. HDF5 fills several in turn. */
typedef struct vn_collection {
	uint64_t at;
	uint64_t n;     /* largest object number seen, plus 1 */
	bool     whole; /* it was read to its end */
	struct {
		uint32_t from, bytes;
	} object[VN_MOST_OBJECTS]; /* from 0: none */
} vn_collection;

/* For a file with 8-byte addresses, counted from its first byte. Zeroed, except fd and bytes. */
typedef struct vn_header_reader {
	int              fd;
	int64_t          bytes;
	vn_header_window header, heap;
	vn_collection    collection[VN_COLLECTIONS]; /* the ones used last */
	int              turn;
} vn_header_reader;

typedef struct vn_object_header {
	vn_shape      shape;
	unsigned char type[VN_TYPE_BYTES]; /* as H5Tencode gives it, without its first two bytes */
	size_t        type_bytes;
	uint64_t      offset, stored; /* place and size of the data in the file */
	uint32_t      found;          /* bit i: attribute i of the list was found */
} vn_object_header;

/* Reads the header of the dataset at `address`, and the n attributes in list (n <= 32) into *to.
 * Returns false if HDF5 must read it; *to is then undefined. */
bool vn_object_header_read(vn_header_reader *r, uint64_t address, const vn_header_attribute *list, int n, void *to,
                           vn_object_header *h);

/* HDF5's checksum of structure: Jenkins' lookup3. */
uint32_t                   vn_header_checksum(const unsigned char *p, size_t n);
/* How a header has the types of attributes: a 64-bit little-endian integer, such a float, and a
 * UTF-8 string of variable length. */
extern const unsigned char vn_header_int[12], vn_header_real[20], vn_header_text[20];
