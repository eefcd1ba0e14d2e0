/* profile.h: which tokens, heads and channels carry an error, and that in words.
 *
 * The error's energy is summed along every axis of a pair of tensors: index i of
 * axis a has error[i] = sum (c-r)^2 and ref[i] = sum r^2 over the elements with
 * that index. Positions where exactly one side is not finite, or the two are not
 * the same NaN or infinity, are counted in bad[i] and left out of the sums.
 *
 * Words are said only where an axis splits in two: sorted by relative error
 * error[i] / ref[i], its indices show a gap of at least 16 (100 where an index
 * has fewer than 16 elements, whose energies scatter by themselves), and what is
 * above the gap is less than all. Where nothing splits, nothing is said. With a floor
 * relative errors that it explains are none: what rounds a little is not apart from what
 * is exact.
 */
#ifndef VN_COMPARE_PROFILE_H
#define VN_COMPARE_PROFILE_H

#include "capture/recording/numbers.h"
#include "compare/text/lines.h"
#include "libref/base/error.h"
#include "libref/base/tensor.h"

typedef struct vn_axis_profile {
	char     name[24];        /* "head"; "axis 1" where the axes have no names */
	int64_t  n;
	double  *error, *ref;     /* (n) */
	int64_t *bad;             /* (n) */
} vn_axis_profile;

typedef struct vn_profile {
	int             n_axes;   /* the tensor's rank */
	vn_axis_profile axis[VN_MAX_RANK];
	int64_t         n, bad;   /* elements; of them bad */
	double          error, ref;
	double          noise;    /* error / ref of an index up to which it counts as none */
	double          factor;   /* least squares: c is nearest to factor r; 1 when r is zero */
	double          apart;    /* error that is left then, over ref */
	double          offset;   /* mean of c - r */
	double          level;    /* error that is left without the offset, over ref */
	vn_lines        words;    /* "heads 4-7 of 14 carry 99.9 % of the error" */
} vn_profile;

/* Of two tensors of one shape with at least one element; sums are in double and
 * in row-major order. axes: the dims string, or "". noise as in vn_profile; 0: none is known. The only failure is memory.
 * vn_profile_free afterwards, whatever happened. */
vn_status vn_profile_of(const vn_tensor *ref, const vn_tensor *cand, const char *axes, double noise, vn_profile *p, vn_error *err);
/* The same of tensors of recordings, whatever their size; no noise is known. */
vn_status vn_profile_read(vn_numbers *ref, vn_numbers *cand, vn_profile *p, vn_error *err);
void      vn_profile_free(vn_profile *p);

/* Fills words of a profile that is summed up. */
vn_status vn_profile_say(vn_profile *p, vn_error *err);

#endif
