/* team.c: see team.h. */
#include "compare/metrics/team.h"

#include "libref/base/system.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct team_member {
	pthread_t thread;
	void (*work)(void *ctx, int thread);
	void *ctx;
	int   number;
} team_member;

int vn_team_size(void)
{
	return vn_processors();
}

static void *begin_worker(void *arg)
{
	team_member *m = arg;
	m->work(m->ctx, m->number);
	return NULL;
}

static _Atomic int *shared; /* vn_team_among */

void vn_team_among(_Atomic int *spare)
{
	shared = spare;
}

int vn_team_now(int threads)
{
	const int spare = shared ? *shared : threads;
	return spare + 1 < threads ? spare + 1 : threads;
}

/* Takes up to `wanted` spare threads. Returns how many. */
static int take_spare(int wanted)
{
	int spare = shared ? *shared : 0, taken = 0;
	do
		taken = spare < 0 ? 0 : spare < wanted ? spare : wanted;
	while (taken > 0 && !atomic_compare_exchange_weak(shared, &spare, spare - taken));
	return taken;
}

void vn_team_run(int threads, void (*work)(void *ctx, int thread), void *ctx)
{
	const int taken = shared && threads > 1 ? take_spare(threads - 1) : 0;
	threads = shared ? 1 + taken : threads;
	team_member *m = threads > 1 ? malloc((size_t)threads * sizeof *m) : NULL;
	int          n = 0;

	for (; m && n < threads - 1; n++) {
		m[n] = (team_member) { .work = work, .ctx = ctx, .number = n + 1 };
		if (pthread_create(&m[n].thread, NULL, begin_worker, &m[n]) != 0)
			break;
	}
	work(ctx, 0);
	while (n > 0)
		pthread_join(m[--n].thread, NULL);
	if (taken > 0)
		*shared += taken;
	free(m);
}

typedef struct dealt {
	atomic_int next;
	int        n;
	void (*one)(void *ctx, int i);
	void *ctx;
} dealt;

static void take_next(void *ctx, int thread)
{
	dealt *d = ctx;

	(void)thread;
	for (int i; (i = atomic_fetch_add(&d->next, 1)) < d->n;)
		d->one(d->ctx, i);
}

void vn_team_each(int threads, int n, void (*one)(void *ctx, int i), void *ctx)
{
	dealt d = { .n = n, .one = one, .ctx = ctx };

	threads = threads > 0 ? threads : vn_team_size();
	vn_team_run(threads < n ? threads : n, take_next, &d);
}
