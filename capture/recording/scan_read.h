/* scan_read.h: careful reading of single HDF5 objects, for scan*.c in the child. */
#ifndef VN_CAPTURE_SCAN_READ_H
#define VN_CAPTURE_SCAN_READ_H

#include "capture/file/h5.h"
#include "capture/recording/scan.h"

/* "FILE: OBJECT: ..." to the parent, and the end of this process. */
__attribute__((noreturn, format(printf, 3, 4)))
void vn_refuse(const vn_scan *s, const char *object, const char *format, ...);

/* n zeroed elements by malloc, or the end. */
void *vn_scan_room(const vn_scan *s, const char *object, size_t n, size_t size);
/* Strings of fixed length, n bytes, may be padded by blanks and lack the NUL: text has room for it. */
void  vn_scan_end_text(hid_t type, char *text, size_t n);

/* The file through our driver, read-only. cache: bytes of chunks that HDF5 keeps of a dataset; 0: 1 MB. */
hid_t vn_scan_open(const vn_scan *s, size_t cache);

/* Attributes of an object; 0 when absent, refused when of another kind, longer
 * than fits, or not one value. */
int vn_scan_text(const vn_scan *s, hid_t o, const char *object, const char *name, char *text, size_t room);
int vn_scan_int(const vn_scan *s, hid_t o, const char *object, const char *name, int64_t *x);
int vn_scan_real(const vn_scan *s, hid_t o, const char *object, const char *name, double *x);
/* Each attribute of an object as a frame: numbers and strings as text. */
void vn_scan_attributes(const vn_scan *s, hid_t o, const char *object, int frame);

/* What a dataset holds and how. Refused: rank above VN_MAX_RANK, sizes beyond counting,
 * foreign storage and filters, more bytes than the file can hold. */
typedef struct vn_extent {
	int     rank;
	int64_t dim[VN_MAX_RANK], count;
	size_t  width;  /* bytes an element in the file */
	bool    direct; /* contiguous: the numbers lie at offset */
	int64_t offset;
} vn_extent;
vn_extent vn_scan_extent(const vn_scan *s, hid_t dset, hid_t type, const char *object);

/* A one-dimensional dataset of strings, or of whole numbers from 0 that fit int32.
 * cut_off: -1 at the end are left out (ids of steps that a run did not come to).
 * batch: rows of a two-dimensional one, where -1 pads; 0: it has one dimension. */
char   **vn_scan_lines(const vn_scan *s, hid_t dset, const char *object, int64_t *n);
int32_t *vn_scan_ids(const vn_scan *s, hid_t dset, const char *object, bool cut_off, int64_t *n, int64_t *batch);
/* One member of a compound dataset as text of `room` bytes each, or as doubles. NULL when absent. */
char    *vn_scan_member_text(const vn_scan *s, hid_t dset, const char *object, const char *member, int64_t n, size_t room);
double  *vn_scan_member_real(const vn_scan *s, hid_t dset, const char *object, const char *member, int64_t n);

#endif
