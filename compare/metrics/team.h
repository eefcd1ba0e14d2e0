/* team.h: runs one piece of work on several threads.
 *
 * Threads live as long as the work. Starting one takes about 30 microseconds. Unlike OpenMP's
 * threads, they never spin at a barrier.
 */
#pragma once

/* Returns the number of processors that this process may use. */
int vn_team_size(void);

/* Runs work(ctx, i) for i from 0 to threads-1, each in its own thread, 0 in the caller's; returns
 * when all have returned. If fewer threads can be started, fewer run: work must take its share from
 * a common counter. */
void vn_team_run(int threads, void (*work)(void *ctx, int thread), void *ctx);

/* From now on this process shares its threads with other processes. *spare, in memory that all of
 * them share, is the number of threads that none of them uses. vn_team_run takes from it as many as
 * it wants besides the caller's thread, and gives them back. NULL: this process shares with
 * none. */
void vn_team_among(_Atomic int *spare);
/* Returns how many threads vn_team_run would use now if asked for this many. */
int  vn_team_now(int threads);

/* Runs one(ctx, i) for i from 0 to n-1, each on the next free thread. threads 0: one per
 * processor. */
void vn_team_each(int threads, int n, void (*one)(void *ctx, int i), void *ctx);
