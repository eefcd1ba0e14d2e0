/* team.h: runs one piece of work on several threads.
 *
 * Threads live as long as the work. Starting one takes some 30 microseconds, and none spins at a
 * barrier, as OpenMP's do unless configured before they are loaded.
 */
#ifndef VN_COMPARE_TEAM_H
#define VN_COMPARE_TEAM_H

/* Returns the number of processors that this process may use. */
int vn_team_size(void);

/* Runs work(ctx, i) for i from 0 to threads-1, each in its own thread, 0 in the caller's; returns
 * when all have returned. If fewer threads can be started, fewer run: work must take its share from
 * a common counter. */
void vn_team_run(int threads, void (*work)(void *ctx, int thread), void *ctx);

/* From now on this process shares its threads with others: *spare, in memory of all, are those that none of them uses.
 * vn_team_run takes what it wants beyond the caller's own, as far as there are, and gives them back. NULL: it is
 * alone. */
void vn_team_among(_Atomic int *spare);
/* Returns how many of so many threads vn_team_run would use now. */
int  vn_team_now(int threads);

/* Runs one(ctx, i) for i from 0 to n-1, each on the next free thread. threads 0: one per
 * processor. */
void vn_team_each(int threads, int n, void (*one)(void *ctx, int i), void *ctx);

#endif
