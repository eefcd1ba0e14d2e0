/* plan_check.c: does a plan from a file obey the rules that building enforces? */
#include "capture/plan_json.h"

#include <stdlib.h>
#include <string.h>

/* How many of each an operation has; -1 may stand for those behind `must`. */
typedef struct arity {
	int n_in, n_w, must_w, n_out;
} arity;

static const arity arities[VN_N_OPS] = {
	[VN_OP_EMBED] = { 0, 1, 1, 1 },     [VN_OP_RMS_NORM] = { 1, 1, 1, 1 }, [VN_OP_LINEAR] = { 1, 2, 1, 1 },
	[VN_OP_ROPE] = { 1, 0, 0, 1 },      [VN_OP_ATTENTION] = { 3, 0, 0, 3 }, [VN_OP_ACT] = { 1, 0, 0, 1 },
	[VN_OP_GATED] = { 2, 0, 0, 1 },     [VN_OP_ADD] = { 2, 0, 0, 1 },
};

static bool is(const vn_value *v, int rank, int a, int b, int c)
{
	const int size[] = { a, b, c };
	return v->rank == rank && memcmp(v->size, size, (size_t)rank * sizeof *size) == 0;
}

static bool same(const vn_value *a, const vn_value *b)
{
	return a->rank == b->rank && memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size) == 0;
}

/* Elements of a token's row; 0 when there is another axis of tokens or keys, or too many. */
static int64_t row(const vn_value *v)
{
	int64_t n = 1;
	if (v->size[0] != VN_T)
		return 0;
	for (int i = 1; i < v->rank; i++) {
		if (v->size[i] < 1 || n > INT32_MAX / v->size[i])
			return 0;
		n *= v->size[i];
	}
	return n;
}

static bool linear_fits(const vn_value *x, const vn_value *y, const vn_shape *w, const vn_shape *bias)
{
	return w->rank == 2 && row(x) == w->dim[1] && row(y) == w->dim[0] && (y->rank == 2 || y->rank == 3) &&
	       (!bias || (bias->rank == 1 && bias->dim[0] == w->dim[0]));
}

static bool rope_fits(const vn_rope *r, const vn_value *x)
{
	return x->rank == 3 && row(x) && r->rotary_dim >= 2 && r->rotary_dim % 2 == 0 && r->rotary_dim <= x->size[2];
}

static bool attention_fits(const vn_plan *p, const vn_node *n)
{
	const vn_value *q = &p->value[n->in[VN_ATTN_Q]];
	const int       H = n->c.attention.heads, G = n->c.attention.kv_heads, K = n->c.attention.head_dim;

	if (H < 1 || G < 1 || H % G || !row(q) || !is(q, 3, VN_T, H, K) || !is(&p->value[n->in[VN_ATTN_K]], 3, VN_T, G, K) ||
	    !is(&p->value[n->in[VN_ATTN_V]], 3, VN_T, G, K) || !same(&p->value[n->out[VN_ATTN_CONTEXT]], q))
		return false;
	for (int slot = VN_ATTN_SCORES; slot <= VN_ATTN_PROBS; slot++)
		if (n->out[slot] >= 0 &&
		    (!is(&p->value[n->out[slot]], 3, H, VN_T, VN_S) || !p->value[n->out[slot]].on_demand))
			return false;
	return true;
}

static bool fits(const vn_plan *p, const vn_node *n)
{
	const vn_value *x = n->n_in ? &p->value[n->in[0]] : NULL, *y = &p->value[n->out[0]];
	const vn_shape *w = n->n_w ? &p->weight[n->w[0]].shape : NULL;

	switch (n->op) {
	case VN_OP_EMBED:
		return w->rank == 2 && w->dim[0] >= p->vocab && is(y, 2, VN_T, (int)w->dim[1], 0);
	case VN_OP_RMS_NORM:
		return row(x) && w->rank == 1 && w->dim[0] == x->size[x->rank - 1] && same(x, y);
	case VN_OP_LINEAR:
		return linear_fits(x, y, w, n->w[1] < 0 ? NULL : &p->weight[n->w[1]].shape);
	case VN_OP_ROPE:
		return rope_fits(&n->c.rope.rope, x) && same(x, y);
	case VN_OP_ATTENTION:
		return attention_fits(p, n);
	case VN_OP_ACT:
		return row(x) && same(x, y);
	case VN_OP_GATED:
	case VN_OP_ADD:
		return row(x) && same(x, &p->value[n->in[1]]) && same(x, y);
	case VN_N_OPS:
		break;
	}
	return false;
}

/* What is there and made when. made: the node of each value so far, or -1. */
static const char *connect(vn_plan *p, int i, int *made)
{
	vn_node *n = &p->node[i];
	arity    a = arities[n->op];

	while (n->n_w < a.n_w && n->n_w >= a.must_w)
		n->w[n->n_w++] = -1;
	while (n->n_out < a.n_out && n->n_out >= 1)
		n->out[n->n_out++] = -1;
	if (n->n_in != a.n_in || n->n_w != a.n_w || n->n_out != a.n_out)
		return "its op has another number of inputs, weights or outputs";
	for (int j = 0; j < a.must_w; j++)
		if (n->w[j] < 0)
			return "a weight is missing";
	for (int j = 0; j < n->n_in; j++) {
		int v = n->in[j];
		if (v < 0 || p->value[v].alias_of >= 0 || made[v] < 0)
			return "an input is missing, a second name, or made later";
		if (p->value[v].on_demand)
			return "an input is made only on demand";
		p->value[v].last_use = i;
	}
	for (int j = 0; j < n->n_out; j++) {
		int v = n->out[j];
		if (v < 0 && j > 0)
			continue;
		if (v < 0 || p->value[v].alias_of >= 0 || made[v] >= 0)
			return "an output is missing, a second name, or made twice";
		made[v] = p->value[v].node = i;
		p->value[v].slot = j;
	}
	return fits(p, n) ? NULL : "its sizes do not fit together";
}

vn_status vn_plan_settle(vn_plan *p, vn_error *err)
{
	const char *why = NULL;
	int        *made = malloc(((size_t)p->n_values + 1) * sizeof *made);
	bool       *cache = calloc((size_t)p->n_nodes + 1, sizeof *cache);
	vn_status   st = VN_OK;

	if (!made || !cache) {
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for a plan of %d nodes", p->n_nodes);
		goto done;
	}
	for (int v = 0; v < p->n_values; v++) {
		made[v] = -1;
		p->value[v].last_use = -1;
	}
	p->caches = 0;
	for (int i = 0; i < p->n_nodes; i++) {
		const vn_node *n = &p->node[i];
		why = connect(p, i, made);
		if (!why && n->op == VN_OP_ATTENTION) {
			int slot = n->c.attention.cache;
			if (slot < 0 || slot >= p->n_nodes || cache[slot])
				why = "its cache slot is another node's, or out of range";
			else
				cache[slot] = true;
			p->caches = slot >= p->caches ? slot + 1 : p->caches;
		}
		if (why) {
			st = vn_fail(err, VN_ERR_FORMAT, "/plan/nodes[%d] (%s): %s", i, vn_op_name(n->op), why);
			goto done;
		}
	}
	for (int v = 0; v < p->n_values && !st; v++) {
		vn_value *x = &p->value[v];
		if (x->alias_of < 0 ? made[v] < 0 : x->alias_of >= v || !same(x, &p->value[x->alias_of]))
			st = vn_fail(err, VN_ERR_FORMAT, "/plan/values[%d] (%s): %s", v, x->name,
			             x->alias_of < 0 ? "no node makes it" : "not a second name of an earlier value of its sizes");
		else if (x->alias_of >= 0) {
			x->node = p->value[x->alias_of].node;
			x->slot = p->value[x->alias_of].slot;
		}
	}
done:
	free(made);
	free(cache);
	return st;
}
