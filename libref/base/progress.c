/* progress.c: see progress.h. */
#include "libref/base/progress.h"

#include "libref/base/signals.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 512 };

static const double FORETOLD_FROM = 0.02; /* share of the time from which the rest can be foretold */

/* The work that is shown, and its line on the terminal. The lock protects these. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static vn_progress    *current;
static double          shown; /* when */
static bool            dirty, ticking, off;

double vn_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Counts down while nothing more is done. At least 1: it is not done. */
static double seconds_left(const vn_progress *p, double now)
{
	const double left = (p->seen_at - p->started) * (1 / p->share[p->seen] - 1) - (now - p->seen_at);
	return left > 1 ? left : 1;
}

static double unit_of(const vn_progress *p)
{
	return p->total < 1000000000 ? 1e6 : 1e9;
}

static void add_done(const vn_progress *p, int64_t done, char line[LINE])
{
	const double unit = unit_of(p);

	if (p->bytes)
		vn_text_add(line, LINE, "%s %.1f of %.1f %s", p->what, (double)done / unit, (double)p->total / unit,
		            unit < 1e9 ? "MB" : "GB");
	else
		vn_text_add(line, LINE, p->total > 0 ? "%s %" PRId64 " of %" PRId64 : "%s %" PRId64, p->what, done, p->total);
}

static void add_rate(const vn_progress *p, double rate, char line[LINE])
{
	if (p->bytes)
		vn_text_add(line, LINE, ", %.3g %s/s", rate / unit_of(p), unit_of(p) < 1e9 ? "MB" : "GB");
	else
		vn_text_add(line, LINE, rate < 100 ? ", %.3g/s" : ", %.0f/s", rate);
}

static void format_progress(vn_progress *p, double now, char line[LINE])
{
	const int64_t done = p->count ? (int64_t)*p->count : p->done;
	const double  passed = now - p->started, rate = passed > 0 ? (double)done / passed : 0.0;

	if (done != p->seen) {
		p->seen = done;
		p->seen_at = now;
	}
	add_done(p, done, line);
	if (p->share && done > 0 && done < p->total && p->share[done] >= FORETOLD_FROM)
		vn_text_add(line, LINE, ", %.0f s left", seconds_left(p, now));
	else if (!p->share && rate > 0.0 && p->total > 0) {
		add_rate(p, rate, line);
		vn_text_add(line, LINE, ", %.0f s left", (double)(p->total - done) / rate);
	} else
		vn_text_add(line, LINE, ", %.0f s", passed);
}

/* Replaces the terminal's line. Bypasses stderr, which drops control sequences (printed.h). */
static void replace_line(char line[LINE])
{
	fflush(stderr);
	dprintf(STDERR_FILENO, "\r\033[K%s", vn_text_clean(line, LINE));
}

/* With the lock held. */
static void show_bars(void)
{
	static const char spin[] = "|/-\\";
	static int        turn;
	char              line[LINE] = "";
	const double      now = vn_seconds();

	vn_text_add(line, LINE, "%c ", spin[turn++ % 4]);
	format_progress(current, now, line);
	replace_line(line);
	shown = now;
	dirty = true;
}

/* Shows that the program is alive during a long step. */
static void *run_ticker(void *unused)
{
	(void)unused;
	for (;;) {
		nanosleep(&(struct timespec) { .tv_nsec = 200000000 }, NULL);
		pthread_mutex_lock(&lock);
		if (current && vn_seconds() - shown >= 0.2)
			show_bars();
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* A child process lacks this thread and inherits the lock's state, so the lock must not
 * be held at a fork. */
static void start_ticking(void)
{
	pthread_t thread;
	sigset_t  all, before;

	if (ticking)
		return;
	ticking = true;
	vn_signals_of_others(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, run_ticker, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

void vn_progress_begin(vn_progress *p, const vn_progress *how)
{
	static bool prepared;

	*p = *how;
	p->started = vn_seconds();
	p->on = !off && !current && isatty(STDERR_FILENO);
	if (!p->on)
		return;
	if (!prepared)
		pthread_atfork(before_fork, after_fork, after_fork);
	prepared = true;
	start_ticking();
	pthread_mutex_lock(&lock);
	current = p;
	pthread_mutex_unlock(&lock);
}

void vn_progress_start(vn_progress *p, const char *what, int64_t total)
{
	vn_progress_begin(p, &(vn_progress) { .what = what, .total = total });
}

void vn_progress_off(void)
{
	off = true;
}

void vn_progress_total(vn_progress *p, int64_t total)
{
	if (!p->on)
		return;
	pthread_mutex_lock(&lock);
	p->total = total;
	pthread_mutex_unlock(&lock);
}

void vn_progress_at(vn_progress *p, int64_t done)
{
	if (!p->on)
		return;
	pthread_mutex_lock(&lock);
	p->done = done;
	if (vn_seconds() - shown >= 0.1)
		show_bars();
	pthread_mutex_unlock(&lock);
}

void vn_progress_watch(vn_progress *p, const volatile uint32_t *count)
{
	if (!p->on)
		return;
	pthread_mutex_lock(&lock);
	p->count = count;
	pthread_mutex_unlock(&lock);
}

void vn_progress_stop(vn_progress *p)
{
	if (!p->on)
		return;
	pthread_mutex_lock(&lock);
	current = NULL;
	p->on = false;
	if (dirty) {
		replace_line((char[LINE]) { "" });
		dirty = false;
	}
	pthread_mutex_unlock(&lock);
}
