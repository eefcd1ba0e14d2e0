/* local.h: how far numbers are from what the reference computes of the same inputs, in units
 * of what their precision alone does there.
 *
 * With A what the reference computes in the candidate's precision, B the same more
 * precisely, C the candidate's numbers: the local error is C - A, its floor A - B, at
 * least one rounding of the format. Both are taken over the whole tensor (nmse), over
 * the worst token, and of the worst element.
 */
#ifndef VN_COMPARE_LOCAL_H
#define VN_COMPARE_LOCAL_H

#include "compare/comparison/comparison.h"

/* A local error of more floors than this is the operation's own. VN_LOCAL_LIMIT: the nmse over the whole tensor.
 * VN_PEAK_LIMIT: the nmse of the worst token, and the squared error of the worst element; these find one wrong token of
 * thousands, and one wrong channel. Healthy engines reach 3.0 and 5.3 at most (tests/parity_replay.py). */
#define VN_LOCAL_LIMIT 4.0
#define VN_PEAK_LIMIT 16.0

/* Fills local, floor (of the tensor, the worst token and the worst element) and bad of *l, and zeroes the rest. a, b and c
 * have one shape. axes: the dims string. storage: the candidate's storage format. threads: 0 for one per processor. Fails
 * only for want of memory. */
vn_status vn_local_measure(const vn_tensor *a, const vn_tensor *b, const vn_tensor *c, const char *axes, vn_dtype storage, int threads,
                           vn_replayed *l, vn_error *err);
/* The same. mapped: all three tensors lie in shared mappings; their pages are released after use. */
vn_status vn_local_measure_mapped(const vn_tensor *a, const vn_tensor *b, const vn_tensor *c, const char *axes, vn_dtype storage, bool mapped,
                                  int threads, vn_replayed *l, vn_error *err);

/* Raises the floors of *most to what another healthy implementation z makes of the same inputs: z - A. */
vn_status vn_local_other(const vn_tensor *z, const vn_tensor *a, const char *axes, int threads, vn_replayed *most, vn_error *err);
/* Where C is less far from another healthy implementation z than from A, the local error is C - z. */
vn_status vn_local_alone(const vn_tensor *z, const vn_tensor *c, const char *axes, int threads, vn_replayed *l, vn_error *err);
/* Adds the floors of *most to those of *l: the two errors are independent. */
void vn_local_allow(vn_replayed *l, const vn_replayed *most);

/* The error in multiples of its floor. */
double vn_local_ratio(const vn_replayed *l);
/* The worst token's nmse, or the square of the worst element's error, in multiples of its floor: the larger. */
double vn_local_worst(const vn_replayed *l);
/* Both as one number: the share of the allowed error that is used. 1 is the limit. n: elements of the tensor. */
double vn_local_limit_fraction(const vn_replayed *l, int64_t n);

/* The same of a checkpoint. NaN: not replayed. */
double vn_local_over_floor(const vn_checkpoint *p);
double vn_local_peak(const vn_checkpoint *p);
/* The larger of both: one number for a column. */
double vn_local_shown(const vn_checkpoint *p);
/* Is the error of this one its operation's own? */
bool   vn_local_beyond(const vn_checkpoint *p);
/* Only the order of the columns differs, and what reads the tensor is right. */
bool   vn_local_is_order(const vn_checkpoint *p);

#endif
