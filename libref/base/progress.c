/* progress.c: see progress.h. */
#include "libref/base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

double vn_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void vn_progress_start(vn_progress *p, const char *what, int64_t total)
{
	*p = (vn_progress){ .what = what, .total = total, .started = vn_seconds(), .on = isatty(STDERR_FILENO) };
}

void vn_progress_at(vn_progress *p, int64_t done)
{
	if (!p->on)
		return;
	double now = vn_seconds(), passed = now - p->started;
	if (now - p->shown < 0.1)
		return;
	double rate = passed > 0 ? (double)done / passed : 0.0;
	fprintf(stderr, "\r\033[K%s %" PRId64 " of %" PRId64, p->what, done, p->total);
	if (rate > 0.0)
		fprintf(stderr, ", %.3g/s, %.0f s left", rate, (double)(p->total - done) / rate);
	fflush(stderr);
	p->shown = now;
	p->dirty = true;
}

void vn_progress_stop(vn_progress *p)
{
	if (p->dirty) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	p->dirty = false;
}
