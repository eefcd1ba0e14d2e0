/* ahead.h: prefetches the numbers that a thread measures next, while it measures others.
 *
 * The first sweep over a slice of numbers waits for memory half of its time; later sweeps over the
 * slice do not wait. So the second sweep also prefetches the next slice. Numbers come in runs, one
 * per side; a thread knows its current run and the next one.
 *
 * Processors drop a prefetch of a page that is not mapped yet. So one number of every
 * VN_AHEAD_MAPPED bytes, which the kernel maps together, is read. Only numbers that will be
 * measured are read.
 *
 * Threads  each thread needs a vn_ahead of its own.
 */
#pragma once

#include "compare/metrics/pair.h"

enum { VN_AHEAD_MAPPED = 1 << 16 };

typedef struct vn_ahead_run {
	const unsigned char *at, *end; /* NULL: none */
} vn_ahead_run;

typedef struct vn_ahead {
	vn_ahead_run now[2], then[2];
} vn_ahead;

/* Returns the run of elements [from, to) of one side of p; skip: an empty run. */
static inline vn_ahead_run vn_ahead_of(const vn_pair *p, int side, int64_t from, int64_t to, bool skip)
{
	return skip ? (vn_ahead_run) { NULL, NULL }
	            : (vn_ahead_run) { vn_pair_at(p, side, from), vn_pair_at(p, side, to < p->n ? to : p->n) };
}

/* Begins a run of one side, after which `then` will be measured. Fetching stays a slice of `slice`
 * bytes ahead.
 *
 * Sweeps fetch as much as they measure, so during a short previous run (a tensor's last row) little
 * of this run was fetched. If that is less than a row (`row` bytes), fetching would stay too late
 * for ever, because a row is read once before the sweep that fetches. Then fetching starts a slice
 * further on instead. */
static inline void vn_ahead_begin(vn_ahead *a, int side, vn_ahead_run run, size_t slice, size_t row, vn_ahead_run then)
{
	const vn_ahead_run was = a->now[side];
	const size_t       bytes = (size_t)(run.end - run.at), whole = bytes < slice ? bytes : slice;
	const size_t       enough = row > slice / 4 ? row : slice / 4;
	a->now[side] = run;
	if (run.at && was.at >= run.at + (enough < whole ? enough : whole) && was.at < run.end + slice)
		a->now[side].at = was.at; /* fetching began during the previous run */
	else if (run.at)
		a->now[side].at += whole;
	a->then[side] = then;
}

/* Returns the place of `bytes` bytes of one side to fetch now, or NULL. They may extend beyond the
 * end of a run. */
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
