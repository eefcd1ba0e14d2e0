/* calibrate.h: limits fitted to runs that are known to be healthy.
 *
 * Each pair is compared under limits that a healthy run cannot break
 * (vn_sanity). The values checked are therefore those that compare will check
 * against the fitted limits, with steps and rows pooled in the same way. The limit
 * of a point is its worst value over all pairs, times the margin. It is a limit by
 * depth if that makes the limits of the layers tighter by half.
 *
 * Owner   comparisons are borrowed and must outlive the calibration.
 */
#ifndef VN_COMPARE_CALIBRATE_H
#define VN_COMPARE_CALIBRATE_H

#include "compare/comparison/comparison.h"

#include <stdio.h>

/* One value of a healthy run. */
typedef struct vn_seen {
	const char *name, *file; /* of the checkpoint, of the candidate */
	vn_form     form;
	vn_metric   metric;
	double      value;       /* as held against a limit */
	int64_t     rows;        /* of scores */
	int         layer, digits, order; /* digits: of the coarser format; order: of the observations */
} vn_seen;

typedef struct vn_calibration {
	vn_seen *seen;
	int      n, room;
	int      pairs, layers;
	double   margin;
	const char *name;
} vn_calibration;

/* floor: every pair has one. */
vn_status vn_sanity(bool floor, vn_limits **l, vn_error *err);
/* Adds the values of a comparison under vn_sanity. An error if the run is not healthy. */
vn_status vn_calibration_add(vn_calibration *k, const vn_comparison *c, vn_error *err);
/* Writes the rules after the head, a comment that names their source. Sorts the observations. */
vn_status vn_calibration_write(vn_calibration *k, FILE *out, vn_error *err);
void      vn_calibration_free(vn_calibration *k);

#endif
