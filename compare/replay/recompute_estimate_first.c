/* recompute_estimate_first.c: estimates a plan on the first tokens of a call; see recompute.h. */
#include "compare/replay/recompute_internal.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST = 64 /* tokens of a call */, PART = 8 /* 1 of so many is computed */ };

/* Does no query of an attention see tokens behind its own, whatever else a fault changes? */
static bool sees_no_later(const vn_node *n)
{
	const vn_experiment *e = vn_node_experiment(n);
	const int            form = e ? e->attention.form : VN_ATTN_USUAL, cache = e ? e->attention.cache : VN_CACHE_USUAL;

	return n->c.attention.causal &&
	       (!e || (e->attention.ahead <= 0 && !e->attention.blind && !e->attention.leak && !e->attention.again &&
	               !e->attention.blocks && !e->attention.window_of && e->attention.head_map != VN_HEADS_FLAT &&
	               form != VN_ATTN_OVER_QUERIES &&
	               (cache == VN_CACHE_USUAL || cache == VN_CACHE_LATE || cache == VN_CACHE_F16 ||
	                cache == VN_CACHE_F8 || cache == VN_CACHE_F8_WIDE)));
}

/* Does the node make each row from the tokens up to its own, whatever follows? */
static bool is_causal(const vn_plan *plan, const vn_node *n)
{
	switch (n->op) {
	case VN_OP_EMBED:
	case VN_OP_LINEAR:
	case VN_OP_SLICE:
	case VN_OP_ACT:
	case VN_OP_GATED:
	case VN_OP_ADD: return true;
	case VN_OP_RMS_NORM:
	case VN_OP_LAYER_NORM:
	case VN_OP_L2_NORM: return !n->x.norm.width;
	/* the frequencies of the other types follow from the length of the text */
	case VN_OP_ROPE: return n->c.rope.rope.type != VN_ROPE_DYNAMIC && n->c.rope.rope.type != VN_ROPE_LONGROPE;
	case VN_OP_ATTENTION: return sees_no_later(n) && vn_node_keep_rule(plan, n).state < 0;
	case VN_OP_ROWS:
		return n->x.rows.form == VN_ROWS_TILES || n->x.rows.form == VN_ROWS_ROUND ||
		       n->x.rows.form == VN_ROWS_LOG_SOFTMAX;
	default: return false;
	}
}

static bool all_causal(const vn_plan *plan)
{
	for (int i = 0; i < plan->n_nodes; i++)
		if (!is_causal(plan, &plan->node[i]))
			return false;
	return true;
}

/* Is the checkpoint the rows of all tokens of the only call? */
static bool is_one_call(const vn_recompute *p)
{
	const vn_value *v = &p->site.plan->value[p->site.target];
	return p->when == 0 && p->site.first == 0 && p->rows == p->site.tokens && !p->site.sampled && v->state < 0 &&
	       v->size[0] == VN_T;
}

vn_status vn_recompute_estimate_first(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, double *off,
                                      vn_error *err)
{
	const int64_t      few = p->site.tokens / PART;
	const size_t       n = (size_t)(few * vn_value_row(&p->site.plan->value[p->site.target]));
	const void        *data;
	vn_recompute_plan  r;
	vn_recompute_error sums = { 0 };

	*off = (double)NAN;
	if (p->site.tokens < LEAST || !is_one_call(p) || !all_causal(plan))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "its first tokens are not computed alone");
	double *z = vn_alloc(2 * n, sizeof *z), *c = z + n;
	vn_recompute_begin(&r, p, plan, weights, &p->w[VN_OWN_WIDTH]);
	r.few = few;
	const vn_status st = vn_recompute_value(&r, p->site.target, &data, err);
	if (!st) {
		vn_to_f64(z, data, r.w->eval->width, n);
		vn_to_f64(c, p->site.cand.data, p->site.cand.dtype, n);
		vn_recompute_add_error(z, c, (int64_t)n, &sums);
		*off = vn_recompute_nmse(sums);
	}
	vn_recompute_end(&r);
	free(z);
	return st;
}
