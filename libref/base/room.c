/* room.c: see room.h. */
#include "libref/base/room.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

void *vn_room_keep(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void vn_room_return(void *room, size_t bytes)
{
	if (room)
		munmap(room, bytes);
}

bool vn_room_for(size_t bytes)
{
	void *p = vn_room_keep(bytes);

	vn_room_return(p, bytes);
	return p;
}

static void *wait_for_gate(void *gate)
{
	pthread_mutex_lock(gate);
	pthread_mutex_unlock(gate);
	return NULL;
}

bool vn_room_for_threads(int n)
{
	pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	pthread_t      *thread = n > 0 ? malloc((size_t)n * sizeof *thread) : NULL;
	int             started = 0;

	pthread_mutex_lock(&gate);
	while (thread && started < n && pthread_create(&thread[started], NULL, wait_for_gate, &gate) == 0)
		started++;
	pthread_mutex_unlock(&gate);
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	return started >= n;
}

void *vn_room_large(size_t bytes)
{
	enum { PAGE = 2 << 20 }; /* of x86-64, and of arm64 with pages of 4 KiB */
	void *p;

	if (bytes < 2 * PAGE)
		return malloc(bytes ? bytes : 1);
	if (bytes > SIZE_MAX - PAGE || !(p = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE)))
		return NULL;
#ifdef MADV_HUGEPAGE
	madvise(p, bytes, MADV_HUGEPAGE); /* only advice */
#endif
	return p;
}
