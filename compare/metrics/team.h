/* team.h: one piece of work by several threads.
 *
 * They live as long as the work: starting one takes some 30 microseconds, and nobody
 * spins at a barrier as OpenMP's do, unless they are told not to before they are loaded.
 */
#ifndef VN_COMPARE_TEAM_H
#define VN_COMPARE_TEAM_H

/* One a processor that this process may use. */
int  vn_team_size(void);

/* work(ctx, i) for i from 0 to threads-1, each in a thread of its own, 0 in the caller's; back when all are.
 * Where no more threads can be had, fewer: work takes its share from a counter that they share. */
void vn_team_run(int threads, void (*work)(void *ctx, int thread), void *ctx);

/* one(ctx, i) for i from 0 to n-1, each by whichever thread is free; threads 0: one a processor. */
void vn_team_each(int threads, int n, void (*one)(void *ctx, int i), void *ctx);

#endif
