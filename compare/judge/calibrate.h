/* calibrate.h: fits limits to runs that are known to be correct.
 *
 * Each pair of recordings is compared under limits that a correct run cannot break
 * (vn_judge_sanity). So the values observed are exactly those that `compare` will check against the
 * fitted limits, with steps and rows pooled in the same way. The limit of a point is its worst
 * value over all pairs, times the margin. The limit is given by depth if that makes the limits of
 * the layers tighter by half.
 *
 * Reads   request.limits, opened.ref, opened.cand, the checkpoints, pools.pooled_logits
 * Fills   a vn_calibration of the caller's
 * Owner   comparisons are borrowed and must outlive the calibration.
 */
#pragma once

#include "compare/comparison/comparison.h"

#include <stdio.h>

/* One value observed in a correct run. */
typedef struct vn_seen {
	const char *name, *file; /* names of the checkpoint and of the candidate's file */
	vn_form     form;
	vn_metric   metric;
	double      value;                /* the quantity that a limit bounds (vn_limit_subject) */
	int64_t     rows;                 /* rows of the logits */
	int         layer, digits, order; /* digits: of the coarser format; order: of observation */
} vn_seen;

typedef struct vn_calibration {
	vn_seen    *seen;
	int         n;
	int         pairs, layers;
	double      margin;
	const char *name;
} vn_calibration;

/* Creates the limits for the correct runs. floor: whether every pair has a floor. The caller
 * destroys *l. */
vn_status vn_judge_sanity(bool floor, vn_limits **l, vn_error *err);
/* Adds the values of a comparison under vn_judge_sanity. Fails if the run is not correct. */
vn_status vn_calibration_add(vn_calibration *k, const vn_opened *o, const vn_checkpoints *all, const vn_pools *pools,
                             vn_error *err);
/* Writes the rules, below a comment that names their source. Sorts k->seen. */
vn_status vn_calibration_write(vn_calibration *k, FILE *out, vn_error *err);
void      vn_calibration_free(vn_calibration *k);
