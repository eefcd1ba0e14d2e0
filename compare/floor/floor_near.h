/* floor_near.h: rejects a floor that is far from the floors of neighbouring operations; and
 * vn_floor_reject, for every check of floors. */
#ifndef VN_COMPARE_FLOOR_NEAR_H
#define VN_COMPARE_FLOOR_NEAR_H

#include "compare/comparison/comparison.h"

/* A floor may exceed all floors of its inputs and of the operations that read it by at most this
 * factor, in nmse and in worst-token nmse. Measured on correct runs: up to 13. */
#define VN_FLOOR_NEAR 100.0

/* Checks each floor of a recording against those of neighbouring operations. rounding: the nmse of
 * one rounding. */
vn_status vn_floor_check_near(vn_comparison *c, double rounding, vn_error *err);

/* Rejects the floor of p, with a reason: p then has no floor and is outside, unless --allow
 * floor. */
__attribute__((format(printf, 3, 4))) void vn_floor_reject(vn_comparison *c, vn_checkpoint *p, const char *format, ...);

#endif
