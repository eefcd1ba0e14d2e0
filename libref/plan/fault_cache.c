/* fault_cache.c: faults of the cache of keys and values (specs/models.md, 9.9). */
#include "libref/plan/fault_inside.h"

enum { BLOCK = 16 }; /* tokens, where blocks are mixed up */

/* x of a row: which form, of what (cache_of), and whether in the first call, too. */
#define OF(form, of, steps) ((form) + 16 * (of) + 64 * (steps))

static int form(const vn_fault_row *r)
{
	return (int)r->x % 16;
}

static const char *fits(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)p;
	return n->x.attention.cache == form(r) && n->x.attention.cache_of == (int)r->x / 16 % 4 ? "it is so already"
	     : form(r) == VN_CACHE_HEADS_FIRST && n->c.attention.kv_heads == 1         ? "there is one key head"
	     : form(r) == VN_CACHE_RING && n->c.attention.window < 2                   ? "it has no window" : NULL;
}

static vn_status make(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];

	(void)err;
	n->x.attention.cache = form(r);
	n->x.attention.cache_of = (int)r->x / 16 % 4;
	n->x.attention.cache_steps = (int)r->x / 64;
	n->x.attention.cache_block = form(r) == VN_CACHE_RING ? n->c.attention.window : form(r) == VN_CACHE_NEXT || form(r) == VN_CACHE_PAST ? 1 : BLOCK;
	return VN_OK;
}

#define ROW(id, means, form, of, steps) { id, means, VN_ON(ATTENTION), fits, make, NULL, OF(form, of, steps) }

static const vn_fault_row rows[] = {
	ROW("C1", "slots without the number of their block: sixteen tokens share one, the last is there", VN_CACHE_BLOCKLESS, 0, 0),
	ROW("C1.before", "tokens are written to the slot before theirs", VN_CACHE_NEXT, 0, 0),
	ROW("C1.after", "tokens are written to the slot behind theirs", VN_CACHE_PAST, 0, 0),
	ROW("C2", "the last block of sixteen was not written: the sequence before this is there, which began alike", VN_CACHE_FORMER, 0, 0),
	ROW("C2.seen", "the slots behind the last token, to the end of their block, are seen, with what that sequence left", VN_CACHE_SEEN, 0, 0),
	ROW("C3", "values are written to the slot before theirs", VN_CACHE_NEXT, 2, 0),
	ROW("C3.after", "values are written to the slot behind theirs", VN_CACHE_PAST, 2, 0),
	ROW("C4", "blocks of sixteen tokens exchanged in pairs", VN_CACHE_SWAPPED, 0, 0),
	ROW("C5", "tokens behind the first call are not yet in the cache when it is read: zeros", VN_CACHE_LATE, 0, 1),
	ROW("C5.before", "tokens behind the first call are not yet in the cache when it is read: the one before", VN_CACHE_STALE, 0, 1),
	ROW("C6", "keys of a block of sixteen tokens read head by head, not token by token", VN_CACHE_HEADS_FIRST, 1, 0),
	ROW("C7.f16", "a cache in float16, read behind the first call", VN_CACHE_F16, 0, 1),
	ROW("C7.f8", "a cache in float8 (e4m3), read behind the first call", VN_CACHE_F8, 0, 1),
	ROW("C7.e5m2", "a cache in float8 (e5m2), read behind the first call", VN_CACHE_F8_WIDE, 0, 1),
	ROW("C8", "a ring of the window's size whose keys begin a slot late, behind the first call", VN_CACHE_RING, 1, 1),
};

const vn_fault_chapter vn_faults_cache = { rows, sizeof rows / sizeof *rows };
