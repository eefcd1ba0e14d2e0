/* replay_variants.c: widens the floor of a value by what other correct implementations of its
 * operation differ by. */
#include "compare/replay/reference_variants.h"
#include "compare/replay/replay_state.h"

#include "libref/base/alloc.h"
#include "libref/ops/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 8 }; /* with few tokens, an error may be small by chance */

/* A number from -1/2 to 1/2, by a hash of x: the same token is rounded the same way every time,
 * so its error adds up. */
static float draw_rounding(float x, uint32_t seed)
{
	uint32_t d;

	memcpy(&d, &x, sizeof d);
	d = (d ^ seed * 0x9e3779b9u) * 0x85ebca6bu;
	d = (d ^ d >> 13) * 0xc2b2ae35u;
	d ^= d >> 16;
	return (float)(d >> 8) * 0x1p-24f - 0.5f;
}

/* Changes each number by up to half an ulp, and each row (of `width`) by up to half an ulp of 1
 * as a whole, because a norm may have rounded its factor. */
static void redraw_roundings(float *x, size_t n, size_t width, vn_dtype storage, uint32_t seed)
{
	const int digits = vn_dtype_digits(storage);

	for (size_t r = 0; r < n; r += width) {
		const float row = 1.0f + ldexpf(draw_rounding(x[r], seed + DRAWS), -digits);
		for (size_t i = r; i < r + width && i < n; i++) {
			int exponent;
			if (!isnormal(x[i]))
				continue;
			frexpf(x[i], &exponent);
			x[i] = row * (x[i] + ldexpf(draw_rounding(x[i], seed), exponent - 1 - digits));
		}
	}
}

/* ---- in a replay ----------------------------------------------------------------------------- */

typedef struct drawn {
	int    value; /* an input of the engine's */
	size_t n;     /* 0: none */
	float *was, *now;
} drawn;

/* Queries and keys of the delta rule are normalised inside the kernel that reads them. */
static vn_status take_inputs(vn_replay *r, const vn_node *node, drawn d[2], vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0;
	     !st && i < 2 && node->op == VN_OP_DELTA_RULE && vn_dtype_size(r->e[VN_REPLAY_OWN].policy.storage) == 2; i++) {
		const int      v = node->in[i ? VN_DELTA_K : VN_DELTA_Q];
		const vn_shape s = vn_replay_shape(r, v);
		const size_t   n = (size_t)vn_shape_count(&s);
		d[i] = (drawn) { v, n, vn_alloc(n, sizeof(float)), vn_alloc(n, sizeof(float)) };
		st = vn_ref_ops.read(r->e[VN_REPLAY_OWN].ref, v, d[i].was, err);
	}
	return st;
}

static vn_status draw_again(vn_replay *r, drawn d[2], size_t width, uint32_t seed, vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; !st && i < 2 && d[i].n; i++) {
		memcpy(d[i].now, d[i].was, d[i].n * sizeof(float));
		redraw_roundings(d[i].now, d[i].n, width, r->e[VN_REPLAY_OWN].policy.storage, seed);
		st = vn_ref_ops.write(r->e[VN_REPLAY_OWN].ref, d[i].value, d[i].now, err);
	}
	return st;
}

static vn_status put_back(vn_replay *r, drawn d[2], vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; i < 2; i++) {
		if (d[i].n && !st)
			st = vn_ref_ops.write(r->e[VN_REPLAY_OWN].ref, d[i].value, d[i].was, err);
		VN_FREE(d[i].was, d[i].now);
	}
	return st;
}

static vn_status run_own(vn_replay *r, int k, vn_error *err)
{
	r->e[VN_REPLAY_OWN].n_out = 0;
	return vn_ref_ops.run(r->e[VN_REPLAY_OWN].ref, k, k + 1, err);
}

typedef struct judged {
	int              value;
	const vn_tensor *own, *cand; /* the node's result as the reference computes it, and the candidate's */
	const char      *axes;
	vn_replayed     *l, most; /* the candidate's distance from own; the largest of the others' */
} judged;

/* Sets the node to its other implementation i. */
static vn_status run_other(vn_replay *r, int k, int i, judged *j, drawn d[2], vn_error *err)
{
	const vn_node *node = &r->plan->node[k];
	const int      threads = r->o->request.options->threads;
	vn_status      st = VN_OK;

	for (uint32_t seed = 0; !st && seed < (d[0].n ? DRAWS : 1); seed++) {
		if ((st = draw_again(r, d, (size_t)node->c.delta.key_dim, seed, err)) || (st = run_own(r, k, err)))
			break;
		const vn_node_output *m = vn_replay_made(&r->e[VN_REPLAY_OWN], j->value);
		if (!m)
			continue;
		st = vn_reference_variant_judges_alone(node, i)
		         ? vn_local_alone(&m->t, j->cand, j->axes, threads, j->l, err)
		         : vn_local_other(&m->t, j->own, j->axes, threads, &j->most, err);
	}
	return st;
}

static bool is_norm(vn_op op)
{
	return op == VN_OP_RMS_NORM || op == VN_OP_GATED_NORM || op == VN_OP_LAYER_NORM;
}

/* transformers' norms sum the squares in float32. If that overflows, their result is 0; the
 * reference sums in double. */
static vn_status judge_overflowed(vn_replay *r, int k, judged *j, vn_error *err)
{
	r->other->node[k].x.norm.sum_f32 = 1;
	vn_status             st = run_own(r, k, err);
	const vn_node_output *m = st ? NULL : vn_replay_made(&r->e[VN_REPLAY_OWN], j->value);
	r->other->node[k] = r->plan->node[k];
	return m ? vn_local_alone(&m->t, j->cand, j->axes, r->o->request.options->threads, j->l, err) : st;
}

/* A call may attend to its own keys and values as they are, and only later calls to the cache's
 * format: a prompt is then attended to before it is cached. What is cached is in its format then
 * too. */
static vn_status judge_own_keys(vn_replay *r, int k, judged *j, vn_error *err)
{
	vn_replay_engine *e = &r->e[VN_REPLAY_OWN];
	vn_policy         unrounded = e->policy;
	void             *data[2] = { NULL };
	vn_status         st = VN_OK;

	unrounded.role[VN_ROLE_CACHE] = VN_ROLE_AS_STORED;
	for (int i = 0; !st && i < 2; i++) {
		const int      v = r->plan->node[k].in[i ? VN_ATTN_V : VN_ATTN_K];
		const vn_shape s = vn_replay_shape(r, v);
		data[i] = vn_alloc((size_t)vn_shape_count(&s), vn_dtype_size(e->policy.storage));
		st = vn_ref_ops.read(e->ref, v, data[i], err);
	}
	for (int rounded = 0; !st && rounded < 2; rounded++) {
		vn_ref_rounds(e->ref, rounded ? e->policy : unrounded);
		for (int i = 0; !st && i < 2; i++)
			st = vn_ref_ops.write(e->ref, r->plan->node[k].in[i ? VN_ATTN_V : VN_ATTN_K], data[i], err);
		if (rounded || st || (st = run_own(r, k, err)))
			continue;
		const vn_node_output *m = vn_replay_made(e, j->value);
		st = m ? vn_local_alone(&m->t, j->cand, j->axes, r->o->request.options->threads, j->l, err) : st;
	}
	vn_ref_rounds(e->ref, e->policy);
	VN_FREE(data[0], data[1]);
	return st;
}

/* ---- a product of few numbers ---------------------------------------------------------------- */

/* Adds to *most what the sum of n float32 products of x and w may err by, in any order: their
 * partial sums are a random walk, each rounded. made: the sum. */
static void add_sum(const float *x, const float *w, int64_t n, double made, vn_replayed *most)
{
	double squares = 0;

	for (int64_t i = 0; i < n; i++)
		squares += (double)x[i] * w[i] * x[i] * w[i];
	const double error = 0x1p-48 * (double)n / 6 * squares; /* the square of half an ulp, a third, and a half */
	most->floor += error;
	most->floor_token += made * made;
	most->floor_max = fmax(most->floor_max, sqrt(error));
}

vn_status vn_replay_allow_sums(vn_replay *r, const vn_node_output *own, vn_replayed *l, vn_error *err)
{
	const vn_node   *node = &r->plan->node[r->plan->value[own->value].node];
	const int        w = node->op == VN_OP_LINEAR ? node->w[0] : -1;
	const int64_t    made = vn_shape_count(&own->t.shape);
	const vn_policy  policy = r->e[VN_REPLAY_OWN].policy;
	vn_replayed      most = { 0 };
	VN_FREED float  *x = NULL;
	VN_FREED float  *rows = NULL;
	VN_FREED double *of = NULL;

	if (w < 0 || policy.storage != VN_F32 || policy.products || l->span != 1 || made > VN_FEW_SUMS || l->bad)
		return VN_OK;
	const vn_matrix m = vn_matrix_of(&vn_model_weights(r->o->model)[w], node->c.linear.transposed);
	if (made % m.M)
		return VN_OK;
	vn_model_need(r->o->model, w);
	x = vn_alloc((size_t)(made / m.M * m.N), sizeof *x);
	rows = vn_alloc((size_t)(m.M * m.N), sizeof *rows);
	of = vn_alloc((size_t)made, sizeof *of);
	const vn_status st = vn_ref_ops.read(r->e[VN_REPLAY_OWN].ref, node->in[0], x, err);
	if (st)
		return st;
	vn_matrix_block_f32(rows, &m, (vn_matrix_part) { 0, m.M, 0, m.N }, policy);
	vn_tensor_numbers(&own->t, 0, made, of);
	for (int64_t i = 0; i < made; i++)
		add_sum(x + i / m.M * m.N, rows + i % m.M * m.N, m.N, of[i], &most);
	most.floor = most.floor_token > 0 ? most.floor / most.floor_token : 0;
	most.floor_token = most.floor;
	vn_local_allow(l, &most);
	return VN_OK;
}

vn_status vn_replay_judge_variants(vn_replay *r, const vn_node_output *own, const vn_tensor *cand, const char *axes,
                                   vn_replayed *l, vn_error *err)
{
	vn_replay_engine      *e = &r->e[VN_REPLAY_OWN];
	const int              k = r->plan->value[own->value].node;
	const vn_node         *node = &r->plan->node[k];
	const int              others = l->bad ? 0 : vn_reference_variants_count(node, e->policy);
	const vn_tensor        a = own->t; /* own is an output of e, and so is overwritten */
	const vn_replay_engine unmodified = *e;
	judged                 j = { .value = own->value, .own = &a, .cand = cand, .axes = axes, .l = l };
	drawn                  d[2] = { { 0 }, { 0 } };
	vn_error               none;
	vn_status              st;

	if (!others && (l->bad || !is_norm(node->op)))
		return VN_OK;
	memset(e->out, 0, sizeof e->out);
	st = take_inputs(r, node, d, err);
	for (int i = 0; !st && i < others; i++) {
		vn_reference_variant_put(&r->other->node[k], e->policy, i);
		st = run_other(r, k, i, &j, d, err);
		r->other->node[k] = *node;
	}
	if (!st && is_norm(node->op))
		st = judge_overflowed(r, k, &j, err);
	if (!st && others && node->op == VN_OP_ATTENTION && e->policy.role[VN_ROLE_CACHE] &&
	    r->plan->value[own->value].state < 0)
		st = judge_own_keys(r, k, &j, err);
	for (size_t i = 0; i < sizeof e->out / sizeof *e->out; i++)
		vn_node_output_free(&e->out[i]);
	memcpy(e->out, unmodified.out, sizeof e->out);
	vn_local_allow(l, &j.most);
	const vn_status back = put_back(r, d, st ? &none : err);
	return st ? st : back ? back : run_own(r, k, err);
}
