/* candidate.c: see candidate.h. */
#include "compare/replay/candidate.h"

#include "compare/match/contract.h"
#include "libref/base/alloc.h"
#include "libref/base/arrange.h"

vn_status vn_replay_candidate(const vn_opened *o, const vn_checkpoint *p, vn_column_order order, vn_tensor *t,
                              unsigned char **own, vn_error *err)
{
	const vn_status st = vn_entry_tensor(o->cand, p->cand, t, err);

	*own = NULL;
	if (st || order == VN_COLUMNS_SAME)
		return st;
	const size_t     n = (size_t)vn_shape_count(&t->shape), size = vn_dtype_size(t->dtype);
	const int64_t    width = t->shape.dim[t->shape.rank - 1];
	const vn_arrange m = vn_columns_arranged(order, width);
	*own = vn_alloc(n, size);
	vn_arrange_bytes(*own, t->data, &m, n / (size_t)width, (size_t)width, size);
	t->data = *own;
	return VN_OK;
}

bool vn_replay_step_follows(const vn_opened *o, const vn_step *s, int64_t position)
{
	const int32_t *at;
	const int64_t  n = vn_recording_tokens(o->cand, NULL, &at);
	int64_t        by;

	vn_positions_moved(o, &by);
	if (s->position != position || s->tokens <= 0 || s->tokens > n - s->position)
		return false;
	for (int64_t t = s->position; t < s->position + s->tokens; t++)
		if (at[t] != t + by)
			return false;
	return true;
}
