/* routing.c: see routing.h. */
#include "compare/replay/routing.h"

#include "compare/judge/choices.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Engines choose by the softmax in float32: two roundings of each exponential, which a difference
 * of scores multiplies. */
#define SOFTMAX 0x1p-22

/* The largest difference of two scores that rounding explains: each was rounded once or, where it
 * is not recorded, is the end of a product that rounding reaches from before. */
static double margin_of(const vn_tensor *scores, vn_dtype format, int span)
{
	enum { NOT_RECORDED = 8 };
	const int64_t n = vn_shape_count(&scores->shape);
	double        most = 0;

	for (int64_t i = 0; i < n; i++)
		most = fmax(most, fabs(vn_tensor_number(scores, i)));
	return SOFTMAX + (span > 1 ? NOT_RECORDED : 1) * 2 * ldexp(most, -vn_dtype_digits(format));
}

vn_status vn_routing_judge(vn_replay *r, const vn_node *node, const vn_tensor *own, const vn_tensor *cand,
                           const vn_tensor *ref, vn_replayed *l, vn_error *err)
{
	const int               from = vn_plan_root(r->plan, node->in[0]);
	const vn_replay_engine *e = &r->e[VN_REPLAY_OWN];
	vn_tensor    scores = { vn_policy_dtype(e->policy, vn_value_wide(r->plan, from)), vn_replay_shape(r, from), NULL };
	const size_t n = (size_t)vn_shape_count(&scores.shape);
	void        *data = malloc(n * vn_dtype_size(scores.dtype) + 1);
	vn_status    st = VN_OK;

	if (!data)
		return vn_fail(err, VN_ERR_NOMEM, "no memory to replay %s", r->plan->value[from].name);
	scores.data = data;
	/* a part of the rows was kept: then none is judged here */
	if (vn_shape_equal(&own->shape, &cand->shape) && !(st = vn_ref_ops.read(e->ref, from, data, err))) {
		const double margin = margin_of(&scores, e->policy.storage, l->span);
		vn_choice    x = { { cand, own }, { &scores, &scores }, margin };
		l->other_ids = vn_choices_sets(&x).other;
		x.ids[1] = ref;
		const vn_ids_found found = vn_choices_sets(&x);
		l->flips = found.other + found.ties;
	}
	free(data);
	return st;
}

void vn_routing_note(const vn_opened *o, const vn_checkpoints *points, vn_lines *notes)
{
	const vn_checkpoint *first = NULL;
	int64_t              flips = 0, other = 0, all = 0;

	for (int i = 0; i < points->n; i++) {
		const vn_checkpoint *p = &points->of[i];
		if (!p->replayed || p->value < 0 || o->plan->node[o->plan->value[p->value].node].op != VN_OP_TOP_K)
			continue;
		flips += p->replay.flips;
		other += p->replay.other_ids;
		all += p->m.n;
		first = first || !p->replay.flips ? first : p;
	}
	if (first)
		vn_lines_add(notes, "experts: %" PRId64 " of %" PRId64 " choices are not the reference's, the first in %s; %s",
		             flips, all, first->name,
		             other ? "where an origin is named, they do not follow from the candidate's own scores"
		                   : "each follows from the candidate's own scores, within their rounding: no fault");
}
