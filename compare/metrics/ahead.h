/* ahead.h: fetches what a thread measures next into its cache, while it computes.
 *
 * A first sweep over numbers from the page cache waits for memory half of its time, and the sweeps
 * after it wait for none: so the second sweep over a slice also fetches a slice. Numbers come in
 * runs, of both sides; a thread knows the run at hand and the next one.
 *
 * Processors drop a prefetch of a page that is not mapped yet, so one number of every
 * VN_AHEAD_MAPPED bytes, which the kernel maps at once, is read. Reads nothing that is not
 * measured.
 *
 * Threads  one of its own for each thread
 */
#ifndef VN_COMPARE_AHEAD_H
#define VN_COMPARE_AHEAD_H

#include "compare/metrics/pair.h"

enum { VN_AHEAD_MAPPED = 1 << 16 };

typedef struct vn_ahead_run {
	const unsigned char *at, *end; /* NULL: none */
} vn_ahead_run;

typedef struct vn_ahead {
	vn_ahead_run now[2], then[2];
} vn_ahead;

/* Elements [from, to) of one side of p; nothing, if skip. */
static inline vn_ahead_run vn_ahead_of(const vn_pair *p, int side, int64_t from, int64_t to, bool skip)
{
	return skip ? (vn_ahead_run) { NULL, NULL }
	            : (vn_ahead_run) { vn_pair_at(p, side, from), vn_pair_at(p, side, to < p->n ? to : p->n) };
}

/* Begins a run of one side, after which `then` will be measured. Fetching stays a slice of `slice`
 * bytes ahead.
 *
 * Sweeps fetch as much as they measure, so a short run before (a tensor's last row) fetched little
 * of this one. Less than a row of `row` bytes would never be enough again: a row is read once
 * before the sweep that fetches. Then what was missed is left out. */
static inline void vn_ahead_begin(vn_ahead *a, int side, vn_ahead_run run, size_t slice, size_t row, vn_ahead_run then)
{
	const vn_ahead_run was = a->now[side];
	const size_t       bytes = (size_t)(run.end - run.at), whole = bytes < slice ? bytes : slice;
	const size_t       enough = row > slice / 4 ? row : slice / 4;
	a->now[side] = run;
	if (run.at && was.at >= run.at + (enough < whole ? enough : whole) && was.at < run.end + slice)
		a->now[side].at = was.at; /* begun while the run before was measured */
	else if (run.at)
		a->now[side].at += whole;
	a->then[side] = then;
}

/* Returns `bytes` of one side to fetch now, or NULL. They may go on behind the end of a run. */
static inline const unsigned char *vn_ahead_next(vn_ahead *a, int side, size_t bytes)
{
	vn_ahead_run *now = &a->now[side];
	bool          first = false;
	if (now->at >= now->end) {
		if (!a->then[side].at)
			return NULL;
		*now = a->then[side];
		a->then[side].at = NULL;
		first = true;
	}
	const unsigned char *at = now->at;
	const uintptr_t      past = (uintptr_t)at % VN_AHEAD_MAPPED;
	now->at += bytes;
	if (first || past == 0)
		(void)*(const volatile unsigned char *)at;
	if (past + bytes > VN_AHEAD_MAPPED && at + (VN_AHEAD_MAPPED - past) < now->end)
		(void)*(const volatile unsigned char *)(at + (VN_AHEAD_MAPPED - past));
	return at;
}

#endif
