/* fault_attention.c: faults of attention (specs/faults.md, chapter A). */
#include "libref/plan/fault_internal.h"

#include <math.h>

/* The previous layer's counterpart of a value; -1: none of the same shape. */
int vn_fault_before(const vn_plan *p, int value)
{
	const vn_value *v = &p->value[vn_plan_root(p, value)];
	const int       o = v->layer > 0                                   ? vn_fault_value(p, v->layer - 1, v->point)
	                    : v->layer == 0 && v->point == VN_POINT_OUTPUT ? vn_fault_value(p, -1, VN_POINT_EMBED)
	                                                                   : -1;
	bool same = o >= 0 && p->value[o].rank == v->rank && p->value[o].wide == v->wide && !p->value[o].on_demand;

	for (int i = 0; same && i < v->rank; i++)
		same = p->value[o].size[i] == v->size[i];
	return same ? o : -1;
}

vn_status vn_make_cache_before(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];

	(void)err;
	for (int i = VN_ATTN_K; i <= VN_ATTN_V; i++)
		if (r->x == 0 || r->x == i)
			n->in[i] = vn_fault_before(f->plan, n->in[i]);
	return VN_OK;
}

/* The value that a layer's first sum reads, which the second sum is to read. */
int vn_fault_first_base(const vn_plan *p, const vn_node *n)
{
	const vn_node *sum = vn_fault_maker(p, n, 0);
	return vn_fault_point(p, n) == VN_POINT_OUTPUT && sum->op == VN_OP_ADD && sum->layer == n->layer ? sum->in[0] : -1;
}

enum { CACHE_BLOCK_TOKENS = 16 }; /* tokens in a block to be mixed up */
enum { CACHE_LATER_MOVED = 2 };   /* slots by which tokens of later calls are moved */

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
	                             : form >= VN_CACHE_LATER_PAST                    ? CACHE_LATER_MOVED
	                                                                              : CACHE_BLOCK_TOKENS;
	return VN_OK;
}

/* Inserts a node before the attention, which moves on. */
static vn_status add_node(vn_faulty *f, int *attention, vn_node n, int like, int *value, vn_error *err)
{
	n.layer = f->plan->node[*attention].layer;
	return vn_fault_insert(f, (*attention)++, n, like, value, err);
}

/* The same operation, with its weights, of other inputs. */
static vn_node made_of(const vn_plan *p, int value, int a, int b)
{
	vn_node n = p->node[p->value[value].node];

	n.in[0] = a;
	n.in[1] = b;
	return n;
}

static vn_node columns_of(int value, int stride, int from, int width)
{
	return (vn_node) { .op = VN_OP_SLICE, .c.slice = { stride, from, width }, .n_in = 1, .in = { value } };
}

/* Puts latent and rotated keys in a row, and takes it apart in the other order. */
static vn_status exchange_halves(vn_faulty *f, int *attention, bool latent_first, int *latent, int *keys, vn_error *err)
{
	const int C = (int)vn_value_row(&f->plan->value[*latent]), R = (int)vn_value_row(&f->plan->value[*keys]);
	const int like[2] = { *latent, *keys };
	int       flat, row;
	vn_status st;

	if ((st = add_node(f, attention, columns_of(*keys, R, 0, R), *latent, &flat, err)))
		return st;
	f->plan->value[flat].size[1] = R;
	const int in[2] = { latent_first ? *latent : flat, latent_first ? flat : *latent };
	if ((st = add_node(
			 f, attention,
			 (vn_node) {
				 .op = VN_OP_JOIN, .c.join = { 1, 1, latent_first ? C : R }, .n_in = 2, .in = { in[0], in[1] } },
			 *latent, &row, err)))
		return st;
	f->plan->value[row].size[1] = C + R;
	st = add_node(f, attention, columns_of(row, C + R, latent_first ? R : 0, C), like[0], latent, err);
	return st ? st : add_node(f, attention, columns_of(row, C + R, latent_first ? 0 : C, R), like[1], keys, err);
}

/* Later calls make their keys and values of what the cache of the latent holds. */
vn_status vn_make_latent_cache(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_plan *p = f->plan;
	const int      l = p->node[node].layer, what = (int)r->x;
	const int      expanded = vn_fault_value(p, l, VN_POINT_KV_B_PROJ), v = vn_fault_value(p, l, VN_POINT_V_PROJ),
			  nope = vn_fault_value(p, l, VN_POINT_K_NOPE), k = vn_fault_value(p, l, VN_POINT_K_ROPE);
	int latent = vn_fault_value(p, l, what == LATENT_RAW ? VN_POINT_KV_LATENT : VN_POINT_KV_A_NORM),
		keys = vn_fault_value(p, l, what == LATENT_UNROTATED ? VN_POINT_K_PE : VN_POINT_K_PE_ROPE), both, kept;
	vn_status st = what == LATENT_SECOND || what == LATENT_BACK
	                   ? exchange_halves(f, &node, what == LATENT_BACK, &latent, &keys, err)
	                   : VN_OK;

	if (st || (st = add_node(f, &node, made_of(p, expanded, latent, -1), expanded, &both, err)) ||
	    (st = add_node(f, &node, made_of(p, nope, both, -1), nope, &kept, err)) ||
	    (st = add_node(f, &node, made_of(p, k, kept, keys), k, &kept, err)))
		return st;
	f->plan->node[node].in[VN_ATTN_KEPT] = kept;
	if ((st = add_node(f, &node, made_of(p, v, both, -1), v, &kept, err)))
		return st;
	f->plan->node[node].in[VN_ATTN_KEPT_VALUES] = kept;
	f->plan->node[node].n_in = VN_ATTN_KEPT_VALUES + 1;
	return VN_OK;
}

#define ATTN(n) ((n)->c.attention)

double vn_fault_scale(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_node *k = vn_fault_maker(p, n, VN_ATTN_K);
	const int      K = ATTN(n).head_dim;

	switch ((int)r->x) {
	case SCALE_MISSING: return 1.0;
	case SCALE_TWICE: return ATTN(n).scale * ATTN(n).scale;
	case SCALE_BY_WIDTH: return 1.0 / sqrt((double)vn_fault_width(p));
	case SCALE_BY_HEAD: return 1.0 / K;
	case SCALE_NO_FACTOR: return 1.0 / sqrt((double)K);
	case SCALE_ROOT_FACTOR: return sqrt(ATTN(n).scale / sqrt((double)K));
	case SCALE_FACTOR_TWICE: return ATTN(n).scale * ATTN(n).scale * sqrt((double)K);
	default: return 1.0 / sqrt((double)(k->op == VN_OP_ROPE ? k->c.rope.rope.rotary_dim : K));
	}
}

bool vn_fault_has_mscale(const vn_plan *p, const vn_node *n)
{
	const vn_rope *r = NULL;

	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_ROPE && p->node[i].layer == n->layer)
			r = &p->node[i].c.rope.rope;
	return r && r->type == VN_ROPE_YARN && r->mscale_all_dim > 0 &&
	       !(fabs(ATTN(n).scale * sqrt((double)ATTN(n).head_dim) - 1.0) < 1e-9);
}

/* x: vn_experiment.attention.blind, for a query that sees no key. */
vn_status vn_make_hides_own(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_status st = vn_const_set(&f->plan->node[node], "ahead", -1, err);
	return st ? st : vn_const_set(&f->plan->node[node], "blind", r->x, err);
}

/* The key heads of the attention in the node's layer; 0: there is none. */
int vn_fault_kv_heads(const vn_plan *p, const vn_node *n)
{
	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_ATTENTION && p->node[i].layer == n->layer)
			return ATTN(&p->node[i]).kv_heads;
	return 0;
}

/* The window of the first layer with one. */
int vn_fault_window(const vn_plan *p)
{
	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_ATTENTION && ATTN(&p->node[i]).window)
			return ATTN(&p->node[i]).window;
	return 0;
}
