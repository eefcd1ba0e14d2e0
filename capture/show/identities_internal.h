/* identities_internal.h: reads the tensors of one identity piece by piece, and loops over all
 * numbers. Shared by the files identities*.c; included nowhere else. */
#pragma once

#include "capture/show/identities.h"
#include "libref/plan/policy.h"

/* Pieces of three tensors fit into the nearest cache. */
enum { VN_MOST_INPUTS = 3, VN_PIECE = 512, VN_MOST_HELD = 32, VN_HELD_BYTES = 48 << 20 };
/* A tensor larger than VN_WHOLE_BYTES that is not stored as it is viewed is read
 * VN_IDENTITIES_WINDOW numbers at a time. */
enum { VN_WHOLE_BYTES = 16 << 20, VN_IDENTITIES_WINDOW = 65536 };

/* A part of such a tensor: n numbers from index `from`. */
typedef struct vn_identity_part {
	int           entry;
	int64_t       from, n;
	unsigned char raw[VN_IDENTITIES_WINDOW * 8];
} vn_identity_part;

typedef struct vn_identity_walk {
	vn_recording     *r;
	const vn_plan    *plan;   /* NULL: not known */
	vn_policy         policy; /* of the run, if it is known */
	bool              known;
	vn_identities    *found;
	vn_error         *err;
	vn_status         st;
	int               step, layer;
	int64_t           place;
	const vn_step    *at;
	int               held[VN_MOST_HELD], n_held;
	/* bytes of held tensors; bytes read since pages were last released; when to release */
	int64_t           bytes, read, most;
	vn_identity_part *part[VN_MOST_INPUTS];
} vn_identity_walk;

/* The tensors of one identity, by name. */
typedef struct vn_parts {
	int                  n;
	const vn_entry      *e[VN_MOST_INPUTS];
	int                  entry[VN_MOST_INPUTS];
	const unsigned char *data[VN_MOST_INPUTS]; /* NULL: read in parts */
	vn_identity_walk    *w;
} vn_parts;

/* Loads the next tensor of an identity; layer -1: outside layers. Returns false if it does not
 * exist, is empty, has its axes in another order than the point, or cannot be read (then w->st is
 * set). */
bool                 vn_parts_load(vn_identity_walk *w, vn_parts *s, int layer, const char *point);
/* Ends an identity. Its tensors are kept for the next identity that uses them while they are
 * small. */
void                 vn_parts_done(vn_identity_walk *w, vn_parts *s);
void                 vn_parts_end(vn_identity_walk *w); /* releases all */
/* Returns n <= VN_IDENTITIES_WINDOW raw numbers of a tensor, valid until the next call for it;
 * NULL: w->st is set. */
const unsigned char *vn_parts_raw(const vn_parts *s, int which, int64_t from, size_t n);
/* Are two of them the same tensor under two names? */
bool                 vn_parts_same(const vn_parts *s, int a, int b);
/* Returns the format that a tensor was computed in, for tolerances: its own, or the run's if that
 * is coarser. */
vn_dtype             vn_parts_format(const vn_parts *s, int which);
double               vn_parts_value(const vn_parts *s, int which, int64_t i);
/* Loads n <= VN_PIECE numbers of a tensor, from index `from`. */
void                 vn_parts_piece(const vn_parts *s, int which, int64_t from, size_t n, double *x);
size_t               vn_piece_size(int64_t left);

/* Checks the walk's layer, if wanted. Layer -1: what is outside layers, and second recordings in
 * any case. */
void vn_identities_check(vn_identity_walk *w, bool wanted);

/* Returns how many x = a + b hold within unit[0] |x| + unit[1] |a| + unit[2] |b|. A NaN does
 * not. */
size_t vn_show_count_sums(const double *x, const double *a, const double *b, const double unit[VN_MOST_INPUTS],
                          size_t n);
/* Returns how many are between low and high. A NaN is not. */
size_t vn_show_count_between(const double *x, double low, double high, size_t n);
double vn_total(const double *x, size_t n);
double vn_total_squares(const double *x, size_t n);
