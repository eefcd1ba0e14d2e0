/* tap.h: which values of a run somebody wants to see, and where they go.
 *
 * A tap does not change the result: an engine computes the same bits with and
 * without. An engine hands selected values over in execution order, each as
 * begin, one or more writes in row-major order, end; a value that is alias of
 * another is handed over once, under the first name. Only the rows of the
 * selected tokens are handed over: the token axis of the shape given to begin
 * is already cut to them. A state (k_cache) has no token axis and comes whole,
 * with a call of which some token is selected.
 *
 * The bytes given to write are the engine's and valid during the call only.
 * A sink that fails ends the run with its error.
 */
#ifndef VN_LIBREF_PLAN_TAP_H
#define VN_LIBREF_PLAN_TAP_H

#include "libref/plan/plan.h"

typedef struct vn_sink {
	void *ctx;
	vn_status (*begin)(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err);
	vn_status (*write)(void *ctx, const void *data, size_t elements, vn_error *err);
	vn_status (*end)(void *ctx, vn_error *err);
} vn_sink;

typedef enum vn_tap_rows { VN_ROWS_ALL, VN_ROWS_LAST, VN_ROWS_RANGE } vn_tap_rows;

typedef struct vn_taps {
	const bool *want;        /* (n_values) of the plan; aliases resolved to their roots */
	vn_tap_rows rows;
	int64_t     first, last; /* VN_ROWS_RANGE: absolute positions, both included */
	vn_sink     sink;
} vn_taps;

/* The rows of a call with `past` tokens cached and `tokens` new ones that the
 * taps select: from *first, *count of them (may be 0: then nothing is handed
 * over). Rows count from 0 in the call. */
void vn_taps_select(const vn_taps *t, int64_t past, int64_t tokens, int64_t *first, int64_t *count);

/* Turn command-line choices into want (n_values, cleared first). No pattern:
 * every value that is not on demand. A pattern that selects nothing is an
 * error that names it. first_layer < 0: all layers; the values outside layers
 * are then limited by patterns alone. */
vn_status vn_taps_choose(const vn_plan *p, const char *const *pattern, int n_patterns,
                         int first_layer, int last_layer, bool *want, vn_error *err);
/* The complaint about a glob that matches no checkpoint of the plan, with the one that is likely to be meant. */
vn_status vn_taps_nothing(const vn_plan *p, const char *glob, vn_error *err);

#endif
