/* fault_norms.c: faults of norms and of the residual stream (specs/models.md, 9.6). */
#include "libref/plan/fault_inside.h"

#include <stdlib.h>
#include <string.h>

#define NORM(n) ((n)->c.norm)

static int columns(const vn_plan *p, const vn_node *n)
{
	const vn_value *y = &p->value[n->out[0]];
	return y->size[y->rank - 1];
}

/* ---- kinds of norms ------------------------------------------------------------------------ */

static vn_status layer_norm(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node].op = VN_OP_LAYER_NORM;
	f->plan->node[node].x.norm.width = 0;
	return VN_OK;
}

/* x: columns less. */
static vn_status divisor(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_const_set(&f->plan->node[node], "divisor", columns(f->plan, &f->plan->node[node]) - r->x, err);
}

static const char *wide_enough(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return columns(p, n) < 2 ? "it norms single columns" : NULL;
}

static const char *several_heads(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return p->value[n->out[0]].rank != 3 || p->value[n->out[0]].size[1] == 1 ? "it does not norm several heads" : NULL;
}

static vn_status all_heads(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	(void)r;
	return vn_const_set(n, "width", (double)vn_value_row(&f->plan->value[n->out[0]]), err);
}

/* ---- weights ------------------------------------------------------------------------------- */

static vn_status other_offset(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	(void)r;
	return vn_const_set(n, "offset", NORM(n).offset != 0.0 ? 0.0 : 1.0, err);
}

static void plus_one(const vn_fault_row *r, const vn_shape *s, const double *x, double *y)
{
	(void)r;
	for (int64_t i = 0; i < vn_shape_count(s); i++)
		y[i] = x[i] + 1.0;
}

static vn_status one_more(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_weight(r, f, node, 0, plus_one, err);
}

static void constant(const vn_fault_row *r, const vn_shape *s, const double *x, double *y)
{
	(void)x;
	for (int64_t i = 0; i < vn_shape_count(s); i++)
		y[i] = r->x;
}

static vn_status no_weight(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];
	vn_fault_row   with = *r;

	with.x = n->op == VN_OP_GATED_NORM ? 1.0 : 1.0 - NORM(n).offset;
	return vn_fault_change_weight(&with, f, node, 0, constant, err);
}

/* The norm whose weights a norm may be given by mistake: of keys for queries, of the feed-forward part for attention, and back. */
static const vn_node *partner(const vn_plan *p, const vn_node *n, bool heads)
{
	static const vn_point pair[][2] = { { VN_POINT_Q_NORM, VN_POINT_K_NORM }, { VN_POINT_ATTN_NORM, VN_POINT_MLP_NORM } };
	const vn_point       *of = pair[!heads], mine = vn_fault_point(p, n);
	const int             v = mine == of[0] || mine == of[1] ? vn_fault_value(p, n->layer, mine == of[0] ? of[1] : of[0]) : -1;
	const vn_node        *o = v < 0 ? NULL : &p->node[p->value[v].node];

	return o && o->n_w == n->n_w && vn_shape_equal(&p->weight[o->w[0]].shape, &p->weight[n->w[0]].shape) ? o : NULL;
}

static const char *with_partner(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return !partner(p, n, r->x > 0) ? (r->x > 0 ? "it is not one of the norms of queries and keys"
	                                            : "it is not one of the two norms of a layer") : NULL;
}

static vn_status partners_weights(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *o = partner(f->sound, vn_fault_sound(f, node), r->x > 0);

	(void)err;
	memcpy(f->plan->node[node].w, o->w, sizeof o->w);
	return VN_OK;
}

/* ---- norms left out, or too many -------------------------------------------------------------- */

/* x: the point, or one more of them */
static const char *at_points(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_point at = vn_fault_point(p, n);

	if (r->x == VN_POINT_Q_NORM)
		return at == VN_POINT_Q_NORM || at == VN_POINT_K_NORM ? NULL : "it is for the norms of queries and keys";
	return at == (vn_point)r->x ? NULL : r->x == VN_POINT_FINAL_NORM ? "it is for the last norm" : "it is for the norm of the feed-forward part";
}

static vn_status twice(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	int       once;
	vn_status st;

	(void)r;
	if (!(st = vn_fault_insert(f, node, f->plan->node[node], f->plan->node[node].out[0], &once, err)))
		f->plan->node[node + 1].in[0] = once;
	return st;
}

static const char *not_normed(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_node *x = vn_fault_maker(p, n, 0);
	(void)r;
	return x->op == VN_OP_RMS_NORM ? "what it rotates is normed" : NULL;
}

/* A norm of heads, with weights of 1. */
static vn_status norm_heads(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_plan *p = f->plan;
	const int      x = p->node[node].in[0], final = vn_fault_value(p, -1, VN_POINT_FINAL_NORM);
	const int      like = p->node[p->value[final].node].w[0], K = p->value[x].size[2];
	const vn_shape s = { .rank = 1, .dim = { K } };
	vn_node        norm = { .op = VN_OP_RMS_NORM, .layer = p->node[node].layer, .n_in = 1, .in = { x }, .n_w = 1 };
	double        *ones = malloc((size_t)K * sizeof *ones);
	int            normed;
	vn_status      st;

	(void)r;
	if (!ones)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a fault");
	for (int i = 0; i < K; i++)
		ones[i] = 1.0;
	NORM(&norm).eps = NORM(&p->node[p->value[final].node]).eps;
	if (!(st = vn_fault_weight(f, like, ones, &s, &norm.w[0], err)) && !(st = vn_fault_insert(f, node, norm, x, &normed, err)))
		f->plan->node[node + 1].in[0] = normed;
	return st;
}

static const char *rotated(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return vn_fault_maker(p, n, 0)->op != VN_OP_RMS_NORM ? "what it rotates is not normed" : NULL;
}

/* The rotation first, the norm behind it; the norm that was there is nobody's input. */
static vn_status norm_after(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node turn = f->plan->node[node], norm = *vn_fault_maker(f->plan, &turn, 0);
	vn_node       first = turn;
	int           turned;
	vn_status     st;

	(void)r;
	first.in[0] = norm.in[0];
	if ((st = vn_fault_insert(f, node, first, turn.out[0], &turned, err)))
		return st;
	vn_node *n = &f->plan->node[node + 1];
	n->op = norm.op;
	n->c = norm.c;
	n->x = norm.x;
	n->n_w = norm.n_w;
	memcpy(n->w, norm.w, sizeof n->w);
	n->in[0] = turned;
	return VN_OK;
}

/* ---- the residual ------------------------------------------------------------------------------ */

/* The norm that reads what an addition adds to; -1. */
static int norm_of_residual(const vn_plan *p, const vn_node *n)
{
	const vn_point at = vn_fault_point(p, n);
	return at == VN_POINT_ATTN_RESIDUAL ? vn_fault_value(p, n->layer, VN_POINT_ATTN_NORM)
	     : at == VN_POINT_OUTPUT        ? vn_fault_value(p, n->layer, VN_POINT_MLP_NORM) : -1;
}

static const char *residual(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return norm_of_residual(p, n) < 0 ? "it is for the two sums of a layer" : NULL;
}

static vn_status after_norm(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node].in[0] = norm_of_residual(f->plan, &f->plan->node[node]);
	return VN_OK;
}

static vn_status no_residual(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	vn_fault_copy_of(f, node, f->plan->node[node].in[1]);
	return VN_OK;
}

/* Input x of the sum is there twice. */
static vn_status doubled(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node   sum = f->plan->node[node];
	int       two;
	vn_status st;

	sum.in[0] = sum.in[1] = sum.in[(int)r->x];
	if (!(st = vn_fault_insert(f, node, sum, sum.in[0], &two, err)))
		f->plan->node[node + 1].in[(int)r->x] = two;
	return st;
}

static const char *of_feed_forward(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return vn_fault_value(p, n->layer, VN_POINT_INPUT) < 0 ? "it is in no layer" : at_points(r, p, n);
}

static vn_status parallel(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	(void)r, (void)err;
	n->in[0] = vn_fault_value(f->plan, n->layer, VN_POINT_INPUT);
	return VN_OK;
}

/* A sum of a layer and the norm that reads what it adds to, from either; -1: none. */
static void pair_of(const vn_plan *p, const vn_node *n, int *sum, int *norm)
{
	const vn_point at = vn_fault_point(p, n);

	*sum = n->op == VN_OP_ADD ? n->out[0] : at == VN_POINT_ATTN_NORM ? vn_fault_value(p, n->layer, VN_POINT_ATTN_RESIDUAL)
	     : at == VN_POINT_MLP_NORM ? vn_fault_value(p, n->layer, VN_POINT_OUTPUT) : -1;
	*norm = *sum < 0 ? -1 : norm_of_residual(p, &p->node[p->value[*sum].node]);
}

/* The sum is normed, not what it adds to: by the same weights. Found at both nodes, and made once. */
static vn_status post_norm(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_plan *p = f->plan;
	int            sum, before;
	vn_status      st;

	(void)r;
	pair_of(p, &p->node[node], &sum, &before);
	if (before < 0 || p->node[p->value[before].node].op == VN_OP_SLICE)
		return VN_OK;
	before = p->value[before].node;
	vn_node norm = p->node[before];
	norm.in[0] = sum;
	if (!(st = vn_fault_follow(f, p->value[sum].node, norm, err)))
		vn_fault_copy_of(f, before, f->plan->node[before].in[0]);
	return st;
}

static const char *normed_residual(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	int sum, norm;

	(void)r;
	pair_of(p, n, &sum, &norm);
	return norm < 0 ? "it is for the two sums of a layer and their norms" : p->node[p->value[norm].node].op == VN_OP_SLICE ? "what it adds to is not normed" : NULL;
}

#define WEIGHTED (VN_ON(RMS_NORM) | VN_ON(LAYER_NORM) | VN_ON(GATED_NORM))
#define ALL      (WEIGHTED | VN_ON(L2_NORM))
#define OFFSET   (VN_ON(RMS_NORM) | VN_ON(LAYER_NORM))

static const vn_fault_row rows[] = {
	{ "N1.1e-5", "eps is 1e-5", ALL, NULL, NULL, "eps", 1e-5 },
	{ "N1.1e-6", "eps is 1e-6", ALL, NULL, NULL, "eps", 1e-6 },
	{ "N1.1e-12", "eps is 1e-12", ALL, NULL, NULL, "eps", 1e-12 },
	{ "N2", "eps is added to the root, not under it", ALL, NULL, NULL, "eps_outside", 1 },
	{ "N3.layer", "a layer norm in place of a root-mean-square norm: the mean is subtracted", VN_ON(RMS_NORM), wide_enough, layer_norm, NULL, 0 },
	{ "N3.rms", "a root-mean-square norm in place of a layer norm: the mean stays", VN_ON(LAYER_NORM), NULL, NULL, "keep_mean", 1 },
	{ "N4", "the variance by one column less", WEIGHTED, wide_enough, divisor, NULL, 1 },
	{ "N5", "the sum of squares, not their mean", WEIGHTED, wide_enough, NULL, "divisor", 1 },
	{ "N6", "1 + weight for weight, or weight for 1 + weight", OFFSET, vn_fault_anywhere, other_offset, NULL, 0 },
	{ "N6.gated", "1 + weight for the weight of a gated norm", VN_ON(GATED_NORM), vn_fault_anywhere, one_more, NULL, 0 },
	{ "N7.weight", "a norm without its weight", WEIGHTED, vn_fault_anywhere, no_weight, NULL, 0 },
	{ "N7.bias", "a norm without its bias", VN_ON(LAYER_NORM), vn_fault_biased, vn_fault_no_bias, NULL, 0 },
	{ "N8.skipped", "queries or keys are not normed", VN_ON(RMS_NORM), at_points, vn_fault_skipped, NULL, VN_POINT_Q_NORM },
	{ "N8.applied", "queries or keys are normed where the family does not", VN_ON(ROPE), not_normed, norm_heads, NULL, 0 },
	{ "N9", "queries or keys normed over all heads together", VN_ON(RMS_NORM), several_heads, all_heads, NULL, 0 },
	{ "N10", "queries or keys normed behind the rotation", VN_ON(ROPE), rotated, norm_after, NULL, 0 },
	{ "N11", "the norm of queries with the weights of that of keys, or back", VN_ON(RMS_NORM), with_partner, partners_weights, NULL, 1 },
	{ "N12", "a norm of a layer with the weights of its other", OFFSET, with_partner, partners_weights, NULL, 0 },
	{ "N13", "the residual is taken behind the norm", VN_ON(ADD), residual, after_norm, NULL, 0 },
	{ "N14.missing", "no residual", VN_ON(ADD), residual, no_residual, NULL, 0 },
	{ "N14.twice", "what is added to the residual is added twice", VN_ON(ADD), residual, doubled, NULL, 1 },
	{ "N14.added", "what is to be added to the residual is left out", VN_ON(ADD), residual, vn_fault_skipped, NULL, 0 },
	{ "N14.doubled", "the residual doubled", VN_ON(ADD), residual, doubled, NULL, 0 },
	{ "N15", "the residual is normed behind the sum, not before", VN_ON(ADD) | OFFSET, normed_residual, post_norm, NULL, 0 },
	{ "N16.skipped", "the last norm is skipped", OFFSET, at_points, vn_fault_skipped, NULL, VN_POINT_FINAL_NORM },
	{ "N16.twice", "the last norm is applied twice", OFFSET, at_points, twice, NULL, VN_POINT_FINAL_NORM },
	{ "N17", "the sum of squares in float16", ALL, NULL, NULL, "sum_f16", 1 },
	{ "N18", "rounded to float16 before the weight", VN_ON(RMS_NORM), NULL, NULL, "first_f16", 1 },
	{ "N19", "a parallel block: the feed-forward part reads the input of the layer", OFFSET, of_feed_forward, parallel, NULL, VN_POINT_MLP_NORM },
};

const vn_fault_chapter vn_faults_norms = { rows, sizeof rows / sizeof *rows };
