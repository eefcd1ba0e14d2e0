/* calibrate.h: limits fitted to runs that are known to be healthy.
 *
 * Each pair is compared under limits that a healthy run cannot break
 * (vn_sanity), so what is held against them is what compare will hold against
 * the fitted ones: steps and rows taken together in the same way. A point's
 * worst over all pairs, times the margin, becomes its limit; by depth where the
 * layers' worsts lie on a slope that makes limits tighter by half.
 *
 * Owner   comparisons are borrowed and must outlive the calibration.
 */
#ifndef VN_COMPARE_CALIBRATE_H
#define VN_COMPARE_CALIBRATE_H

#include "compare/comparison/comparison.h"

#include <stdio.h>

/* One number that a healthy run had. */
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

/* floor: there is one in every pair. */
vn_status vn_sanity(bool floor, vn_limits **l, vn_error *err);
/* What was seen in a comparison under vn_sanity; refused when it is no healthy run. */
vn_status vn_calibration_add(vn_calibration *k, const vn_comparison *c, vn_error *err);
/* The rules, behind the head that says where they come from. Sorts what was seen. */
vn_status vn_calibration_write(vn_calibration *k, FILE *out, vn_error *err);
void      vn_calibration_free(vn_calibration *k);

#endif
