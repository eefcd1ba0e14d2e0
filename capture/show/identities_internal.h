/* identities_internal.h: the numbers of one recording as identities read them: the tensors of one identity, a piece at a
 * time, and the loops over every number. Shared by identities.c and identities_read.c; nobody else includes it. */
#ifndef VN_CAPTURE_IDENTITIES_INTERNAL_H
#define VN_CAPTURE_IDENTITIES_INTERNAL_H

#include "capture/show/identities.h"

/* Pieces of three tensors fit into the nearest cache. */
enum { VN_MOST_INPUTS = 3, VN_PIECE = 512, VN_MOST_HELD = 32 };
/* A tensor that is larger, and not in its file as it is seen, is read so many numbers at a time. */
enum { VN_WHOLE_BYTES = 16 << 20, VN_WINDOW = 65536 };

/* Part of such a tensor: n numbers from number `from` on. */
typedef struct vn_identity_part {
	int           entry;
	int64_t       from, n;
	unsigned char raw[VN_WINDOW * 8];
} vn_identity_part;

typedef struct vn_identity_walk {
	vn_recording  *r;
	const vn_plan *plan; /* NULL: not known */
	vn_identities *found;
	vn_error      *err;
	vn_status      st;
	int            step, layer;
	const vn_step *at;
	int            held[VN_MOST_HELD], n_held;
	int64_t        bytes, read; /* of what is held; read since pages were given back */
	vn_identity_part       *part[VN_MOST_INPUTS];
} vn_identity_walk;

/* Tensors of one identity, under their names. */
typedef struct vn_parts {
	int             n;
	const vn_entry *e[VN_MOST_INPUTS];
	int             entry[VN_MOST_INPUTS];
	const unsigned char *data[VN_MOST_INPUTS]; /* NULL: read in parts */
	vn_identity_walk        *w;
} vn_parts;

/* The next tensor of an identity; layer -1: outside layers. false: it is not there, is empty, or has its axes in
 * another order than the point; or w->st says what went wrong. */
bool    vn_parts_load(vn_identity_walk *w, vn_parts *s, int layer, const char *point);
/* The identity has been looked at. What was read stays for the next one that it is part of, while that is little. */
void    vn_parts_done(vn_identity_walk *w, vn_parts *s);
void    vn_parts_drop(vn_identity_walk *w);
void    vn_parts_end(vn_identity_walk *w); /* of all */
/* n <= VN_WINDOW numbers of one of them as they are, until the next call for it; NULL: w->st says why not. */
const unsigned char *vn_parts_raw(const vn_parts *s, int which, int64_t from, size_t n);
/* Are two of them one tensor under two names? */
bool    vn_parts_same(const vn_parts *s, int a, int b);
double  vn_parts_value(const vn_parts *s, int which, int64_t i);
/* n <= VN_PIECE numbers of one of them, from number `from`. */
void    vn_parts_piece(const vn_parts *s, int which, int64_t from, size_t n, double *x);
size_t  vn_piece_size(int64_t left);

/* How many of x = a + b are within unit[0] |x| + unit[1] |a| + unit[2] |b|; a NaN is not. */
size_t  vn_count_sums(const double *x, const double *a, const double *b, const double unit[VN_MOST_INPUTS], size_t n);
/* How many are low to high; a NaN is not. */
size_t  vn_count_between(const double *x, double low, double high, size_t n);
double  vn_total(const double *x, size_t n);
double  vn_squares(const double *x, size_t n);

#endif
