/* rearranged.c: see rearranged.h. */
#include "compare/rearrange/rearranged.h"
#include "compare/trial/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void vn_rearranged_open(vn_rearranged *r, vn_case *t)
{
	const vn_tensor *c = &t->site->cand;

	*r = (vn_rearranged) { t,
		                   vn_shape_count(&c->shape),
		                   vn_case_all_doubles_of(&t->own),
		                   vn_case_all_doubles_of(&t->fine),
		                   vn_case_all_doubles_of(c),
		                   vn_case_all_doubles_of(c),
		                   vn_case_all_doubles_of(c),
		                   c };
}

void vn_rearranged_close(vn_rearranged *r)
{
	VN_FREE(r->own, r->fine, r->cand, r->a, r->b);
}

void vn_rearranged_judge(vn_rearranged *r, const vn_replayed *allowed, vn_trial *h)
{
	const vn_case *t = r->t;
	const vn_plan *plan = t->site->plan;
	const vn_dtype as = plan ? t->opened->policy.storage : t->format;
	const int      v = t->site->target;

	h->node = vn_case_node(t);
	h->applied.kind = VN_BY_RESULT;
	if (as != VN_F64 && !(plan && vn_value_wide(plan, v)))
		for (int64_t i = 0; i < r->n; i++) {
			float x = (float)r->a[i];
			vn_round_f32(&x, as, 1);
			r->a[i] = (double)x;
		}
	const vn_tensor a = { VN_F64, r->like->shape, r->a }, b = { VN_F64, r->like->shape, r->b };
	vn_try_numbers(r->t, &a, &b, allowed, h);
}

bool vn_rearrange_is_made_of(const vn_plan *p, int v, int of)
{
	const vn_node *n = &p->node[p->value[v].node];
	if (v == of)
		return true;
	if (p->value[v].node < p->value[of].node)
		return false;
	for (int i = 0; i < n->n_in; i++)
		if (vn_rearrange_is_made_of(p, vn_plan_root(p, n->in[i]), of))
			return true;
	return false;
}

bool vn_rearrange_could_hold(const vn_rearranged *r, int entry)
{
	const vn_recording *cand = r->t->opened->cand;
	const vn_entry     *e = vn_recording_entry(cand, entry),
				   *me = vn_recording_entry(cand, r->t->result->checkpoints.of[r->t->x->checkpoint].cand);

	return e != me && e->step == me->step && e->dtype == me->dtype && e->same_as < 0 &&
	       strcmp(e->name, me->name) != 0 && vn_shape_count(&e->shape) == r->n &&
	       !vn_rearrange_is_wrong_itself(r->t->result, entry);
}

bool vn_rearrange_is_wrong_itself(const vn_result *r, int entry)
{
	for (int i = 0; i < r->checkpoints.n; i++)
		if (r->checkpoints.of[i].cand == entry && vn_local_beyond(&r->checkpoints.of[i]) &&
		    r->checkpoints.of[i].replay.charged_to < 0)
			return true;
	return false;
}

bool vn_rearrange_any_finite(const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (isfinite(x[i]))
			return true;
	return false;
}
