/* scan_read.h: reads single HDF5 objects defensively, for scan*.c in the child. */
#pragma once

#include "capture/file/h5.h"
#include "capture/file/object_header.h"
#include "capture/recording/frames.h"

/* Sends "FILE: OBJECT: ..." to the parent and ends this process. */
__attribute__((noreturn, format(printf, 3, 4))) void vn_refuse(const vn_scan *s, const char *object, const char *format,
                                                               ...);

/* Allocates n zeroed elements, or ends this process. */
void *vn_scan_room(const vn_scan *s, const char *object, size_t n, size_t size);
/* Terminates a string of fixed length n, which may be padded with blanks and lack the NUL. text has
 * n + 1 bytes. */
void  vn_scan_end_text(hid_t type, char *text, size_t n);

/* Opens the file through our driver, read-only. cache: size of HDF5's chunk cache per dataset in
 * bytes; 0: 1 MB. */
hid_t vn_scan_open(const vn_scan *s, size_t cache);

/* Read an attribute. Return 0 if it is absent; refuse one of another type, too long, or not a
 * single value. */
int  vn_scan_text(const vn_scan *s, hid_t o, const char *object, const char *name, char *text, size_t room);
int  vn_scan_int(const vn_scan *s, hid_t o, const char *object, const char *name, int64_t *x);
int  vn_scan_real(const vn_scan *s, hid_t o, const char *object, const char *name, double *x);
/* Sends each attribute of an object as a frame: numbers and strings as text. */
void vn_scan_attributes(const vn_scan *s, hid_t o, const char *object, int frame);

/* The layout of a dataset. Refused: rank above VN_MAX_RANK, sizes that overflow, external storage
 * and unknown filters, more bytes than the file can hold. */
typedef struct vn_extent {
	int     rank;
	int64_t dim[VN_MAX_RANK], count;
	size_t  width;  /* bytes per element in the file */
	bool    direct; /* contiguous: the data is at offset */
	int64_t offset;
	int64_t stored; /* its bytes in the file: at most those of the file */
} vn_extent;
vn_extent vn_scan_extent(const vn_scan *s, hid_t dset, hid_t type, const char *object);

/* Read a one-dimensional dataset of strings, or of non-negative integers that fit an int32.
 * cut_off: drops -1 at the end (ids of steps that a run did not reach). *batch: rows of a
 * two-dimensional dataset, padded with -1; 0: it is one-dimensional. */
char   **vn_scan_lines(const vn_scan *s, hid_t dset, const char *object, int64_t *n);
int32_t *vn_scan_ids(const vn_scan *s, hid_t dset, const char *object, bool cut_off, int64_t *n, int64_t *batch);
/* The rows of a compound dataset with one axis, as stored. */
typedef struct vn_scan_table {
	const char *object;
	hid_t       type;
	int64_t     n;
	size_t      width;
	char       *rows; /* (n, width) */
} vn_scan_table;
vn_scan_table vn_scan_rows(const vn_scan *s, hid_t dset, hid_t type, const vn_extent *e, const char *object);
/* Reads the column c->name into rows of `size` bytes each, one for each row of the table: text, a
 * double, or a whole number, 0 if that is negative or too large. Returns false if there is no such
 * column. */
bool vn_scan_column(const vn_scan *s, const vn_scan_table *t, const vn_header_attribute *c, void *rows, size_t size);
