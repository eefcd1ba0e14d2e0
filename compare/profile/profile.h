/* profile.h: finds which tokens, heads and channels carry an error, and says so in words.
 *
 * The error's energy is summed along every axis of a pair of tensors, r of the reference and c of
 * the candidate: index i of axis a has error = sum (c-r)^2 and ref = sum r^2 over the elements with
 * that index. Positions where exactly one side is not finite, or the two are not the same NaN or
 * infinity, are counted in bad and left out of the sums.
 *
 * There are words only for an axis whose indices fall into two groups: sorted by relative error
 * error / ref, there is a gap of a factor of at least 16 (100 if an index has fewer than 16
 * elements, whose energies scatter by chance), and not all indices are above it. With a floor,
 * relative errors that the floor explains count as none, so that small roundings are not set apart
 * from exact zeros.
 *
 * Reads   a pair of tensors
 * Fills   a vn_profile of the caller's
 */
#pragma once

#include "capture/recording/numbers.h"
#include "compare/text/lines.h"
#include "libref/base/error.h"
#include "libref/base/tensor.h"

/* Of some elements: the energy of their error and of the reference, and how many are bad. */
typedef struct vn_energy {
	double  error, ref;
	int64_t bad;
} vn_energy;

typedef struct vn_axis_profile {
	char       name[24]; /* "head"; "axis 1" where the axes have no names */
	int64_t    n, first; /* first: the number of index 0: of tokens, if other rows were kept, not 0 */
	vn_energy *at;       /* (n) */
} vn_axis_profile;

typedef struct vn_profile {
	int             n_axes; /* the tensor's rank */
	vn_axis_profile axis[VN_MAX_RANK];
	int64_t         n;      /* elements */
	vn_energy       all;    /* of them */
	double          noise;  /* error / ref of an index up to this counts as none */
	double          factor; /* the factor f that minimises sum (c - f r)^2; 1 if r is zero */
	double          apart;  /* relative error that remains with that factor */
	double          offset; /* mean of c - r */
	double          level;  /* relative error that remains without the offset */
	vn_lines        words;  /* "heads 4-7 of 14 carry 99.9 % of the error" */
} vn_profile;

/* axes: the dims string, or "". first_token: the number of the token of row 0. noise: as in
 * vn_profile; 0: not known. */
typedef struct vn_profile_subject {
	const char *axes;
	int64_t     first_token;
	double      noise;
	int         threads; /* 0: one per processor */
} vn_profile_subject;

/* Profiles two tensors of equal shape with at least one element. Sums are in double: of pieces of
 * 4096 of the last axis, of these in order, of rows in order. Fails only if memory runs out. Call
 * vn_profile_free afterwards, also after a failure. */
vn_status vn_profile_of(const vn_tensor *ref, const vn_tensor *cand, const vn_profile_subject *of, vn_profile *p,
                        vn_error *err);
/* Same for tensors of recordings, read in pieces, with noise 0. threads other than 1: of shared
 * recordings (vn_recording_share). */
vn_status vn_profile_read(vn_numbers *ref, vn_numbers *cand, int threads, vn_profile *p, vn_error *err);
void      vn_profile_free(vn_profile *p);
