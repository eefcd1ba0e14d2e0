/* rearrange_axes.h: finds along which axis a result without a plan is in another order: rows a
 * token late, heads exchanged, columns reversed, interleaved or repeated. */
#ifndef VN_COMPARE_REARRANGE_AXES_H
#define VN_COMPARE_REARRANGE_AXES_H

#include "compare/rearrange/rearranged.h"

/* What order the whole axis is in. Of the last two, the trial's list has the width of a group. */
typedef enum vn_axis_order { VN_AXIS_RUNS, VN_AXIS_INTERLEAVED, VN_AXIS_HALVED } vn_axis_order;

/* Tries for each axis that its indices hold what others should, and that the result was only
 * rounded to a narrower format. The trial's number is the axis: 0 rows, 1 columns (the last axis),
 * 2 + axis of those between; its list has up to 8 runs of first, last, from, step. */
void vn_rearrange_axes(vn_rearranged *r);

#endif
