/* recompute_variant.c: computes a plan with other correct implementations of its nodes, or with a
 * cache in which some slots hold other contents; see recompute.h. */
#include "compare/replay/recompute_internal.h"
#include "compare/replay/reference_variants.h"

#include "libref/base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_KEPT = 64 << 20 }; /* bytes of values that are kept of one variant */

/* The node of another plan that makes what node k of the span makes, and which implementation of it
 * is number i, or the last one if it has fewer; -1: it has none. */
static vn_node *node_of(const vn_recompute *p, const vn_plan *plan, int k, int i, int *which)
{
	/* a changed plan has the same values but may have additional nodes */
	const int value = p->site.plan->node[p->site.span[k]].out[0];
	vn_node  *node = &plan->node[plan->value[value].node];
	const int others = vn_reference_variants_count(node, p->w[VN_OWN_WIDTH].policy);

	*which = i < others ? i : others - 1;
	return node;
}

static void put_variants(const vn_recompute *p, vn_plan *plan, int i)
{
	for (int k = 0, which; k < p->site.n_span; k++) {
		vn_node *node = node_of(p, plan, k, i, &which);
		if (which >= 0)
			vn_reference_variant_put(node, p->w[VN_OWN_WIDTH].policy, which);
	}
}

bool vn_recompute_variant_alone(const vn_recompute *p, const vn_plan *plan, int i)
{
	for (int k = 0, which; k < p->site.n_span; k++) {
		const vn_node *node = node_of(p, plan, k, i, &which);
		if (which >= 0 && vn_reference_variant_judges_alone(node, which))
			return true;
	}
	return false;
}

/* Is it worth keeping what the variant makes, for other plans? A single operation is computed again
 * for each. */
static bool is_kept(const vn_recompute *p, int i)
{
	int64_t bytes = 0;

	for (int k = 0; k < p->site.n_span; k++)
		bytes += p->site.tokens * vn_value_row(&p->site.plan->value[p->site.plan->node[p->site.span[k]].out[0]]) *
		         (int64_t)p->w[VN_OWN_WIDTH].size;
	return p->site.n_span > 1 && bytes <= MOST_KEPT && i < VN_RECOMPUTE_VARIANTS;
}

static vn_status prepare(vn_recompute *p, vn_recompute_variant *v, int i, vn_error *err)
{
	if (v->plan)
		return VN_OK;
	v->w = p->w[VN_OWN_WIDTH];
	v->w.sampled = NULL;
	v->w.unmodified = vn_alloc_zero((size_t)p->site.plan->n_values, sizeof *v->w.unmodified);
	const vn_status st = vn_plan_clone(p->site.plan, &v->plan, err);
	if (!st)
		put_variants(p, v->plan, i);
	return st;
}

vn_status vn_recompute_run_variant(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, int i,
                                   vn_tensor *out, vn_error *err)
{
	const bool            kept = is_kept(p, i);
	vn_recompute_variant *v = &p->variant[kept ? i : 0];
	vn_plan              *other;
	vn_recompute_plan     r;
	vn_status             st = kept ? prepare(p, v, i, err) : VN_OK;

	if (st || (st = vn_plan_clone(plan, &other, err)))
		return st;
	put_variants(p, other, i);
	vn_recompute_begin(&r, p, other, weights, kept ? &v->w : &p->w[VN_OWN_WIDTH]);
	if (kept)
		r.base = v->plan;
	st = vn_recompute_make(&r, out, err);
	vn_plan_destroy(other);
	return st;
}

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
	st = st ? st : vn_recompute_run(p, plan, p->site.weights, as, out, err);
	for (int i = 0; i < taken; i++)
		memcpy(all[i], kept[i], bytes[i]);
	VN_FREE(kept[0], kept[1]);
	return st;
}
