/* progress.h: a line on a terminal that says how far long work is.
 *
 * Shown on stderr at most ten times a second, rewritten in place, and only
 * when stderr is a terminal: silent in a pipe. Work inside other work is begun
 * after it and stopped before it, and stands behind it in the same line: "step
 * 3 of 64, 5/s, 12 s left; node 7 of 44". While a step takes long a thread of
 * this file turns the sign in front, so that nobody thinks that all has stopped.
 * One thread at a time may call these functions.
 */
#ifndef VN_LIBREF_BASE_PROGRESS_H
#define VN_LIBREF_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct vn_progress {
	const char *what;    /* "layer", "tensor"...: borrowed */
	int64_t     total, done;
	double      started; /* seconds, monotonic clock */
	bool        on;      /* started, not stopped, and there is a terminal */
	struct vn_progress *outer;
} vn_progress;

void vn_progress_start(vn_progress *p, const char *what, int64_t total); /* total 0: not known */
void vn_progress_at(vn_progress *p, int64_t done); /* "layer 7 of 24, 3.1/s, 5 s left" */
void vn_progress_stop(vn_progress *p);             /* clears the line; safe on a zeroed or stopped one */

double vn_seconds(void); /* monotonic clock */

#endif
