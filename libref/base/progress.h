/* progress.h: shows on a terminal how far long work has come.
 *
 * It rewrites one line on stderr at most ten times a second, and only if stderr is a terminal.
 * Work that is started within other work is not shown. During a long step a thread animates a sign
 * at the start of the line, to show that work continues.
 *
 * Threads  call these functions from one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct vn_progress {
	/* How it is shown: the caller's */
	const char              *what;  /* "layer", "tensor"...: borrowed */
	int64_t                  total; /* 0: not known */
	bool                     bytes; /* total and done are bytes: "loading 3.2 of 14.5 GB, 9.8 GB/s" */
	/* For items that take unequal time. share[i], i from 0 to total: fraction of the total time
	 * that the first i items take. Borrowed until the work is stopped. The time left is shown once
	 * 2 % have passed. NULL: equal time */
	const double            *share;
	/* The state of the work */
	int64_t                  done;
	double                   started; /* seconds, monotonic clock */
	bool                     on;      /* it is shown: started first, not stopped, and there is a terminal */
	const volatile uint32_t *count;   /* vn_progress_watch; NULL */
	int64_t                  seen;    /* `done` at the last look, and since when it has that value */
	double                   seen_at;
} vn_progress;

void vn_progress_start(vn_progress *p, const char *what, int64_t total); /* total 0: not known */
/* Same, with all of the caller's fields of `how`. */
void vn_progress_begin(vn_progress *p, const vn_progress *how);
void vn_progress_total(vn_progress *p, int64_t total); /* corrects the total */
void vn_progress_at(vn_progress *p, int64_t done);     /* "layer 7 of 24, 3.1/s, 5 s left" */
/* From now on *count is how much is done, until the work is stopped: a device counts there. */
void vn_progress_watch(vn_progress *p, const volatile uint32_t *count);
void vn_progress_stop(vn_progress *p); /* clears the line; p may be zeroed or stopped */

/* Work that is started from now on is not shown: for one of several processes on a terminal. */
void vn_progress_off(void);

double vn_seconds(void); /* monotonic clock */
