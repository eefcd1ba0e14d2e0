/* fault_cache.c: faults of the cache of keys and values (specs/faults.md, chapter C). */
#include "libref/plan/fault_internal.h"

enum { CACHE_BLOCK_TOKENS = 16 }; /* tokens in a block to be mixed up */

vn_status vn_make_cache(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node  *n = &f->plan->node[node];
	const int form = CACHE_FORM(r->x);

	(void)err;
	n->x.attention.cache = form;
	n->x.attention.cache_of = CACHE_OF(r->x);
	n->x.attention.cache_steps = (int)r->x / 128;
	n->x.attention.cache_block = form == VN_CACHE_RING                            ? n->c.attention.window
	                             : form == VN_CACHE_NEXT || form == VN_CACHE_PAST ? 1
	                                                                              : CACHE_BLOCK_TOKENS;
	return VN_OK;
}
