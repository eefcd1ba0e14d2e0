/* progress.c: see progress.h. */
#include "libref/base/progress.h"

#include "libref/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 512 };

/* The work that was begun last, and what the terminal shows of it. */
static vn_progress *innermost;
static double       shown; /* when */
static bool         dirty;

double vn_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void vn_progress_start(vn_progress *p, const char *what, int64_t total)
{
	*p = (vn_progress){ .what = what, .total = total, .started = vn_seconds(), .on = isatty(STDERR_FILENO) };
	if (p->on) {
		p->outer = innermost;
		innermost = p;
	}
}

static void format_progress(const vn_progress *p, double now, char line[LINE])
{
	double passed = now - p->started, rate = passed > 0 ? (double)p->done / passed : 0.0;

	if (p->outer) {
		format_progress(p->outer, now, line);
		vn_text_add(line, LINE, "; %s %" PRId64 " of %" PRId64, p->what, p->done, p->total);
		return;
	}
	vn_text_add(line, LINE, "%s %" PRId64 " of %" PRId64, p->what, p->done, p->total);
	if (rate > 0.0)
		vn_text_add(line, LINE, ", %.3g/s, %.0f s left", rate, (double)(p->total - p->done) / rate);
}

/* The terminal's line becomes that one. Not by stderr, which lets no such order through (printed.h). */
static void replace(char line[LINE])
{
	fflush(stderr);
	dprintf(STDERR_FILENO, "\r\033[K%s", vn_text_clean(line, LINE));
}

void vn_progress_at(vn_progress *p, int64_t done)
{
	if (!p->on)
		return;
	p->done = done;
	double now = vn_seconds();
	if (now - shown < 0.1)
		return;
	char line[LINE] = "";
	format_progress(p, now, line);
	replace(line);
	shown = now;
	dirty = true;
}

void vn_progress_stop(vn_progress *p)
{
	if (p->on)
		innermost = p->outer;
	p->on = false;
	if (dirty && !innermost) {
		replace((char[LINE]){ "" });
		dirty = false;
	}
}
