/* pages.c: which block of a paged cache holds which tokens. */
#include "libgpu/pages.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_TOKENS 256

void vn_pages_destroy(vn_device *d, vn_pages *p)
{
	vn_buffer_destroy(d, &p->table);
	VN_FREE(p->taken, p->free);
	*p = (vn_pages) { 0 };
}

static int64_t blocks_of(const vn_pages *p, int64_t tokens)
{
	return (tokens + p->block - 1) / p->block;
}

static uint32_t draw_number(uint64_t *x, uint32_t below)
{
	*x = *x * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*x >> 32) % below);
}

/* Adds blocks [from, to), which are new. They are used after the blocks that are already free. */
static void add_blocks(vn_pages *p, int64_t from, int64_t to)
{
	const int64_t n = to - from, had = from - p->used;
	uint64_t      x = p->scatter + (uint64_t)from;

	memmove(p->free + n, p->free, (size_t)had * sizeof(*p->free));
	for (int64_t i = 0; i < n; i++)
		p->free[i] = (uint32_t)(to - 1 - i);
	for (int64_t i = n - 1; i > 0 && p->scatter; i--) {
		const uint32_t k = draw_number(&x, (uint32_t)i + 1), was = p->free[i];
		p->free[i] = p->free[k];
		p->free[k] = was;
	}
}

static vn_status grow_lists(vn_pages *p, int64_t need, vn_error *err)
{
	int64_t room = p->room ? p->room : blocks_of(p, FIRST_TOKENS);

	if (need <= p->room)
		return VN_OK;
	while (room < need)
		room *= 2;
	room = room > p->most ? p->most : room;
	uint32_t *taken = realloc(p->taken, (size_t)room * sizeof(*taken));
	p->taken = taken ? taken : p->taken;
	uint32_t *more = realloc(p->free, (size_t)room * sizeof(*more));
	p->free = more ? more : p->free;
	if (!taken || !more)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a table of %lld blocks", (long long)room);
	add_blocks(p, p->room, room);
	p->room = room;
	return VN_OK;
}

vn_status vn_pages_begin(vn_device *d, vn_pages *p, int64_t keep, int64_t upto, bool guard, vn_error *err)
{
	const int64_t      need = blocks_of(p, upto);
	const VkDeviceSize bytes = (VkDeviceSize)need * sizeof(*p->taken);
	int64_t            stay = blocks_of(p, keep);
	vn_status          st;

	for (int64_t i = stay; i < p->used; i++)
		p->free[p->room - p->used + i - stay] = p->taken[i];
	p->used = stay < p->used ? stay : p->used;
	if ((st = grow_lists(p, need, err)))
		return st;
	for (; p->used < need; p->used++)
		p->taken[p->used] = p->free[p->room - p->used - 1];
	if ((st = vn_buffer_ensure(d, &p->table,
	                           &(vn_buffer_need) { VN_FOR_UPLOAD,
	                                               guard ? bytes : (VkDeviceSize)p->room * sizeof(*p->taken), guard,
	                                               "block table" },
	                           err)))
		return st;
	if (guard)
		memset((char *)p->table.map - p->table.offset, 0xFF, p->table.total);
	memcpy(p->table.map, p->taken, bytes);
	return VN_OK;
}
