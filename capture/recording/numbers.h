/* numbers.h: reads the numbers of a tensor of any size, a piece at a time.
 *
 * For decisions by content (are these replicas, partial sums, which of two names?) and for details of
 * a wrong tensor: no more than one piece of each tensor is in memory.
 */
#ifndef VN_CAPTURE_NUMBERS_H
#define VN_CAPTURE_NUMBERS_H

#include "capture/recording/recording.h"

enum { VN_NUMBERS = 4096 };

typedef struct vn_numbers {
	vn_recording *recording;
	int           entry;
	vn_status     st;                  /* of vn_numbers_value: what the first failure was; err says why */
	vn_error     *err;
	const unsigned char *data;         /* all of it, or NULL */
	int64_t       at;                  /* the number of the first of the piece, */
	size_t        n;                   /* and how many are in it */
	unsigned char raw[VN_NUMBERS * 8]; /* the piece, in the tensor's dtype */
	double        x[VN_NUMBERS];       /* the same */
} vn_numbers;

/* Tensor entry of a recording; NULL: no memory. vn_numbers_close gives back what was loaded for it. err is for
 * vn_numbers_value, too. */
vn_numbers *vn_numbers_open(vn_recording *r, int entry, vn_error *err);
void        vn_numbers_close(vn_numbers *s);
int64_t     vn_numbers_count(const vn_numbers *s);
/* How many are left of n at `at`, at most VN_NUMBERS. */
size_t      vn_numbers_left(int64_t n, int64_t at);
/* The piece from number `at` on into raw; and into x. */
vn_status   vn_numbers_raw(vn_numbers *s, int64_t at, size_t n, vn_error *err);
vn_status   vn_numbers_read(vn_numbers *s, int64_t at, size_t n, vn_error *err);
/* One number, wherever it is: of a tensor of up to 16 MB quickly, of a larger one quickly behind the last that was asked for. */
double      vn_numbers_value(vn_numbers *s, int64_t at);
bool        vn_numbers_are_few(const vn_numbers *s); /* up to 16 MB */

#endif
