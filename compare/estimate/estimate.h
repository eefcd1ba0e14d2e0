/* estimate.h: fits constants of operations (a RoPE base, an eps, a scale, a window...), to find a
 * wrong value that the catalogue does not list.
 *
 * This is one of the strategies in explain/explain_point.c. The table in estimate.c lists, for each
 * kind of operation, what is fitted and how. The folder's other headers are estimators: functions
 * that read a number off the candidate's data and try it as a trial (trial/score.h). The
 * table calls some of them; the others are strategies of their own.
 */
#ifndef VN_COMPARE_ESTIMATE_H
#define VN_COMPARE_ESTIMATE_H

#include "compare/trial/case.h"

/* Fits constants of the operations between the checkpoint and captured values: of each operation
 * alone, then one constant for several operations. */
void vn_estimate(vn_case *t);

#endif
