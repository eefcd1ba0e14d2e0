/* tap.h: a tap selects the values that an engine hands over during a run; a sink receives them.
 *
 * A tap does not change the result: an engine computes the same bits with and without it. An engine
 * hands selected values over in execution order, each as begin, one or more writes in row-major
 * order, end. An alias is handed over once, under the first name. Only rows of the selected tokens
 * are handed over: the token axis of the shape given to begin is already cut to them. A state
 * (k_cache) has no token axis and is handed over whole, in each call in which a token is selected.
 *
 * The bytes given to write belong to the engine and are valid only during the call. A sink that
 * fails ends the run with its error.
 */
#pragma once

#include "libref/plan/plan.h"

typedef struct vn_sink {
	void *ctx;
	vn_status (*begin)(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err);
	vn_status (*write)(void *ctx, const void *data, size_t elements, vn_error *err);
	vn_status (*end)(void *ctx, vn_error *err);
	/* May be NULL. Returns memory into which the engine stores the next elements itself, in place
	 * of calling write; NULL: it must call write. */
	void *(*place)(void *ctx, size_t elements);
	/* May be NULL. Called in place of write with all selected rows of a value, which stay where
	 * they are until its node runs again, they are written, or its last reader has run. False: they
	 * must be written. */
	bool (*lend)(void *ctx, const void *data, size_t elements);
} vn_sink;

typedef enum vn_tap_rows { VN_ROWS_ALL, VN_ROWS_LAST, VN_ROWS_RANGE } vn_tap_rows;

typedef struct vn_taps {
	const bool *want; /* (n_values) of the plan; aliases resolved */
	vn_tap_rows rows;
	int64_t     first, last; /* VN_ROWS_RANGE: absolute positions, both included */
	vn_sink     sink;
} vn_taps;

/* Selects the rows of a call with `past` cached and `tokens` new tokens: *count rows from *first,
 * counted from 0 in the call. *count may be 0: nothing is handed over. */
void vn_taps_select(const vn_taps *t, int64_t past, int64_t tokens, int64_t *first, int64_t *count);

/* A call of a run, as it is recorded. */
typedef struct vn_step {
	int     number;
	int64_t position, tokens; /* tokens cached before this call, new in this call */
	int64_t first_row, rows;  /* which token rows of the call were recorded */
} vn_step;

/* Fills want (n_values) from command-line choices. Without patterns: every value that is not on
 * demand. A pattern that selects nothing is an error that names it. layers: the first and the last;
 * NULL, or the first negative: all. Values outside layers are selected by patterns only. */
vn_status vn_taps_choose(const vn_plan *p, const char *const *pattern, int n_patterns, const int layers[2], bool *want,
                         vn_error *err);
/* Returns the error for a glob that matches no checkpoint of the plan, with the nearest name. */
vn_status vn_taps_nothing(const vn_plan *p, const char *glob, vn_error *err);
