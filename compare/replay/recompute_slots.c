/* recompute_slots.c: computes a checkpoint by a plan with a cache in which some slots hold other
 * contents. */
#include "compare/replay/recompute_internal.h"

#include "libref/base/alloc.h"

#include <stdlib.h>
#include <string.h>

vn_status vn_recompute_run_slots(vn_recompute *p, const vn_plan *plan, const int64_t *const token[2],
                                 vn_recompute_as as, vn_tensor *out, vn_error *err)
{
	static const int of[2] = { VN_ATTN_K, VN_ATTN_V };
	char            *all[2], *kept[2] = { NULL };
	size_t           bytes[2];
	int              taken = 0;
	vn_status        st = VN_OK;

	for (; taken < 2; taken++) {
		vn_tensor x;
		if ((st = vn_recompute_input(p, of[taken], as, &x, err)))
			break;
		const size_t row = (size_t)(vn_shape_count(&x.shape) / x.shape.dim[0]) * p->w[as].size;
		all[taken] = (char *)(uintptr_t)x.data; /* borrowed from the recomputation and put back below */
		bytes[taken] = (size_t)p->site.tokens * row;
		kept[taken] = vn_alloc(bytes[taken], 1);
		memcpy(kept[taken], all[taken], bytes[taken]);
		for (int64_t j = 0; token[taken] && j < p->site.tokens; j++) {
			if (token[taken][j] < 0)
				memset(all[taken] + (size_t)j * row, 0, row);
			else
				memcpy(all[taken] + (size_t)j * row, kept[taken] + (size_t)token[taken][j] * row, row);
		}
	}
	if (!st)
		st = vn_recompute_run(p, plan, p->site.weights, as, out, err);
	for (int i = 0; i < taken; i++)
		memcpy(all[i], kept[i], bytes[i]);
	free(kept[0]);
	free(kept[1]);
	return st;
}
