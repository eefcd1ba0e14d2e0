/* estimate_narrow.c: see estimate_narrow.h. */
#include "compare/explain/estimate_narrow.h"
#include "compare/explain/edit_matrix.h"
#include "compare/explain/narrow.h"
#include "compare/explain/score.h"

#include <stdlib.h>

static bool has_format(const vn_tensor *x, vn_weight_format format)
{
	const int64_t n = vn_shape_count(&x->shape);
	double        y;

	for (int64_t i = 0; i < n; i++) {
		vn_to_f64(&y, (const char *)x->data + (size_t)i * vn_dtype_size(x->dtype), x->dtype, 1);
		if (!(vn_in_format(y, format) == y))
			return false;
	}
	return true;
}

/* The result alone, or the operation with all it reads: whichever has fewer numbers off. */
static vn_status try_format(vn_explain_trial *t, vn_weight_format format, double *y, vn_error *err)
{
	vn_hypothesis h = { .finding = VN_NARROW,
		                .node = t->site->plan->value[t->site->target].node,
		                .capture = t->consumed == VN_CONSUMED_OTHERS,
		                .change = { .kind = VN_BY_NARROW } };
	int64_t       least = -1, off;
	vn_status     st = VN_OK;
	vn_error      none = { "" };

	for (int whole = 0; !st && whole < (t->site->n_span == 1 && !h.capture ? 2 : 1); whole++) {
		const vn_narrow_edit edit = { .format = format, .whole = whole };
		st = vn_narrow_make(t, &edit, y, &off, &none);
		if (st || off < 0 || (least >= 0 && off >= least))
			continue;
		least = off;
		h.change.narrow = edit;
	}
	if (st && st != VN_ERR_UNSUPPORTED)
		*err = none;
	return st && st != VN_ERR_UNSUPPORTED ? st : least < 0 ? VN_OK : vn_try(t, &h, err);
}

vn_status vn_estimate_narrow(vn_explain_trial *t, vn_error *err)
{
	static const vn_weight_format formats[] = { VN_FORMAT_BF16, VN_FORMAT_F16 };
	const vn_dtype                storage = t->c->opened.policy.storage;
	const vn_tensor              *cand = &t->site->cand;
	/* what is stored in 16 bits can only have fewer of bfloat16's */
	const int                     n = storage == VN_BF16 ? 0 : storage == VN_F16 ? 1 : 2;
	vn_status                     st = VN_OK;

	const vn_node *node = &t->site->plan->node[t->site->plan->value[t->site->target].node];
	if (t->part || t->x->unmodified.local.bad || !n || node->out[0] != t->site->target)
		return VN_OK; /* scores and probabilities in another format: estimate_attend.c */
	double *y = malloc((size_t)vn_shape_count(&cand->shape) * sizeof *y + 1);
	if (!y)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld numbers", (long long)vn_shape_count(&cand->shape));
	for (int i = 0; !st && i < n && !vn_answered(t); i++)
		if (has_format(cand, formats[i]))
			st = try_format(t, formats[i], y, err);
	free(y);
	return st;
}
