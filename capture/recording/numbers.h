/* numbers.h: reads the numbers of a tensor of any size, one piece at a time.
 *
 * Used for decisions by content (are these replicas, partial sums, which of two names?) and for
 * details of a wrong tensor. Only one piece of each tensor is in memory.
 */
#pragma once

#include "capture/recording/recording.h"

enum { VN_NUMBERS = 4096 };

typedef struct vn_numbers {
	vn_recording        *recording;
	int                  entry;
	/* first failure of vn_numbers_value; the reason is in *err */
	vn_status            st;
	vn_error            *err;
	const unsigned char *data;                /* the whole tensor, or NULL */
	int64_t              at;                  /* index of the first number of the piece */
	size_t               n;                   /* how many numbers it has */
	unsigned char        raw[VN_NUMBERS * 8]; /* the piece, in the tensor's dtype */
	double               x[VN_NUMBERS];       /* the same */
} vn_numbers;

/* Opens a tensor of a recording. err is used by vn_numbers_value.
 * vn_numbers_close releases what was loaded. */
vn_numbers *vn_numbers_open(vn_recording *r, int entry, vn_error *err);
void        vn_numbers_close(vn_numbers *s);
int64_t     vn_numbers_count(const vn_numbers *s);
/* Returns how many of n numbers remain from index `at`, at most VN_NUMBERS. */
size_t      vn_numbers_left(int64_t n, int64_t at);
/* Read n numbers from index `at`: as bytes into raw; and as doubles into x. */
vn_status   vn_numbers_raw(vn_numbers *s, int64_t at, size_t n, vn_error *err);
vn_status   vn_numbers_read(vn_numbers *s, int64_t at, size_t n, vn_error *err);
/* How two tensors differ; NaN equals NaN, and 0 equals -0. */
typedef struct vn_numbers_differ {
	int64_t count, first; /* elements that differ, and the index of the first; -1: none does */
	double  most;         /* largest difference; infinite: one of two is not finite */
	bool    bits;         /* some bit of a number differs, also of 0 or NaN */
} vn_numbers_differ;
/* Compares entry i of r with entry k of s, which has as many elements. */
vn_status vn_numbers_compare(vn_recording *r, int i, vn_recording *s, int k, vn_numbers_differ *d, vn_error *err);
/* Reads all numbers for their statistics. */
vn_status vn_numbers_stats(vn_numbers *s, vn_stats *stats, vn_error *err);
/* Returns one number. Fast for tensors up to 16 MB; for larger ones, fast if indices increase. */
double    vn_numbers_value(vn_numbers *s, int64_t at);
bool      vn_numbers_are_few(const vn_numbers *s); /* at most 16 MB */
