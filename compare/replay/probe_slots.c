/* probe_slots.c: a checkpoint as the sound plan makes it of a cache some of whose slots hold something else. */
#include "compare/replay/probe_inside.h"

#include <stdlib.h>
#include <string.h>

vn_status vn_probe_run_slots(vn_probe *p, int64_t from, int64_t held, int64_t n, vn_probe_as as, vn_tensor *out, vn_error *err)
{
	static const int of[2] = { VN_ATTN_K, VN_ATTN_V };
	char     *lost[2], *kept[2] = { NULL };
	size_t    bytes = 0;
	int       taken = 0;
	vn_status st = VN_OK;

	for (; !st && taken < 2; taken += !st) {
		vn_tensor x;
		if ((st = vn_probe_input(p, of[taken], as, &x, err)))
			break;
		const size_t row = (size_t)(vn_shape_count(&x.shape) / x.shape.dim[0]) * p->w[as].size;
		lost[taken] = (char *)(uintptr_t)x.data + (size_t)from * row; /* the probe's own, and put back below */
		bytes = (size_t)n * row;
		if (!(kept[taken] = malloc(bytes + 1)))
			st = vn_fail(err, VN_ERR_NOMEM, "no memory for keys and values");
		else {
			memcpy(kept[taken], lost[taken], bytes);
			if (held < 0)
				memset(lost[taken], 0, bytes);
			else
				memcpy(lost[taken], (const char *)x.data + (size_t)held * row, bytes);
		}
	}
	if (!st)
		st = vn_probe_run(p, p->plan, p->weight, as, out, err);
	for (int i = 0; i < taken; i++)
		memcpy(lost[i], kept[i], bytes);
	free(kept[0]);
	free(kept[1]);
	return st;
}
