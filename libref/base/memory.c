/* memory.c: see memory.h. */
#include "libref/base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

static atomic_bool        lost;
static _Thread_local bool sparing;

void vn_memory_lost(void)
{
	atomic_store_explicit(&lost, true, memory_order_relaxed);
}

bool vn_memory_ran_out(void)
{
	return atomic_load_explicit(&lost, memory_order_relaxed);
}

vn_status vn_memory_whole(const char *what, vn_error *err)
{
	return vn_memory_ran_out() ? vn_fail(err, VN_ERR_NOMEM, "%s: memory ran out", what) : VN_OK;
}

void *vn_memory_spare(size_t align, size_t bytes)
{
	sparing = true;
	void *p = aligned_alloc(align, bytes);
	sparing = false;
	return p;
}

bool vn_memory_sparing(void)
{
	return sparing;
}
