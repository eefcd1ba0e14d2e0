/* reference_variants.c: see reference_variants.h. */
#include "compare/replay/reference_variants.h"
#include "compare/replay/replay_made.h"
#include "compare/replay/replay_state.h"
#include "libref/ops/ggml.h"
#include "libref/ops/intermediate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 8 }; /* with few tokens, an error may be small by chance */

static bool is_narrow(vn_dtype storage)
{
	return storage == VN_F16 || storage == VN_BF16;
}

/* Blocks of 32: how the processor computes their scale shows in the last digit of a few numbers. */
static bool in_blocks(const vn_node *n)
{
	return n->c.linear.kept && vn_dtype_block((vn_dtype)(n->c.linear.kept - 1)) == 32;
}

/* The cube of gelu_tanh, whose square torch rounds in bfloat16. */
static bool has_squares(const vn_node *n, vn_dtype storage)
{
	return n->c.act.act == VN_GELU_TANH && storage == VN_BF16;
}

int vn_reference_variants_count(const vn_node *n, vn_policy policy)
{
	const vn_dtype storage = policy.storage;

	switch (n->op) {
	case VN_OP_LINEAR: return policy.products && in_blocks(n);
	case VN_OP_DELTA_RULE: /* the chunked form computes no mistakes */
		return !n->x.delta.form && !n->x.delta.head_map && !n->x.delta.turned && !n->x.delta.restart;
	case VN_OP_ATTENTION: return is_narrow(storage) || storage == VN_F32;
	case VN_OP_ROPE: /* for the angles, and in 16 bits also for intermediate roundings */
		return is_narrow(storage) ? VN_N_ANGLES : storage == VN_F32 ? VN_N_ANGLES - 1 : 0;
	case VN_OP_RMS_NORM:
	case VN_OP_GATED_NORM:
	case VN_OP_L2_NORM: return is_narrow(storage);
	case VN_OP_ACT: return is_narrow(storage) && vn_act_has_formula(n->c.act.act) ? 1 + has_squares(n, storage) : 0;
	case VN_OP_GATED: return is_narrow(storage) ? 2 + has_squares(n, storage) : 0;
	case VN_OP_CAUSAL_CONV: return is_narrow(storage) ? 2 : 0;
	default: return 0;
	}
}

void vn_reference_variant_put(vn_node *n, vn_policy policy, int i)
{
	const vn_dtype                 storage = policy.storage;
	const vn_intermediate_rounding rounding = storage == VN_F16    ? VN_ROUNDING_F16
	                                          : storage == VN_BF16 ? VN_ROUNDING_BF16
	                                                               : VN_ROUNDING_F32;

	switch (n->op) {
	case VN_OP_LINEAR: n->x.linear.inverse = VN_GGML_INVERTED; break;
	case VN_OP_DELTA_RULE: n->x.delta.chunked = 1; break;
	case VN_OP_ATTENTION: n->x.attention.rounding = (int)rounding; break;
	case VN_OP_ROPE:
		if (is_narrow(storage) && i == 0)
			n->x.rope.rounding = (int)rounding;
		else
			n->x.rope.angles = i + !is_narrow(storage);
		break;
	case VN_OP_RMS_NORM:
	case VN_OP_GATED_NORM:
	case VN_OP_L2_NORM: n->x.norm.rounding = (int)rounding; break;
	case VN_OP_ACT:
	case VN_OP_GATED:
		n->x.act.rounding = (int)rounding;
		n->x.act.formula = i + (n->op == VN_OP_ACT);
		break;
	case VN_OP_CAUSAL_CONV:
		n->x.conv.rounding = (int)rounding;
		n->x.conv.formula = i > 0;
		break;
	default: break;
	}
}

bool vn_reference_variant_judges_alone(const vn_node *n, int i)
{
	/* Differences of one digit come from the processor and are the same everywhere. In float16,
	 * the formula of gelu_tanh differs from the exact gelu by as much. */
	return n->op == VN_OP_LINEAR || n->op == VN_OP_ACT ||
	       ((n->op == VN_OP_GATED || n->op == VN_OP_CAUSAL_CONV) && i > 0);
}

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

/* ---- in a replay ------------------------------------------------------------------------------- */

typedef struct drawn {
	int    value; /* an input of the engine's */
	size_t n;     /* 0: none */
	float *was, *now;
} drawn;

/* Queries and keys of the delta rule are normalised inside the kernel that reads them. */
static vn_status take_inputs(vn_replay *r, const vn_node *node, drawn d[2], vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; !st && i < 2 && node->op == VN_OP_DELTA_RULE && is_narrow(r->e[VN_REPLAY_OWN].policy.storage);
	     i++) {
		const int      v = node->in[i ? VN_DELTA_K : VN_DELTA_Q];
		const vn_shape s = vn_replay_shape(r, v);
		const size_t   n = (size_t)vn_shape_count(&s);
		d[i] = (drawn) { v, n, malloc(n * sizeof(float) + 1), malloc(n * sizeof(float) + 1) };
		st = d[i].was && d[i].now ? vn_ref_ops.read(r->e[VN_REPLAY_OWN].ref, v, d[i].was, err)
		                          : vn_fail(err, VN_ERR_NOMEM, "no memory to replay a node");
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
		free(d[i].was);
		free(d[i].now);
	}
	return st;
}

static vn_status run_own(vn_replay *r, int k, vn_error *err)
{
	r->e[VN_REPLAY_OWN].n_out = 0;
	return vn_ref_ops.run(r->e[VN_REPLAY_OWN].ref, k, k + 1, err);
}

static const vn_node_output *find_made(const vn_replay_engine *e, int value)
{
	for (int i = 0; i < e->n_out; i++)
		if (e->out[i].value == value)
			return &e->out[i];
	return NULL;
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
	const int      threads = r->c->request.options->threads;
	vn_status      st = VN_OK;

	for (uint32_t seed = 0; !st && seed < (d[0].n ? DRAWS : 1); seed++) {
		if ((st = draw_again(r, d, (size_t)node->c.delta.key_dim, seed, err)) || (st = run_own(r, k, err)))
			break;
		const vn_node_output *m = find_made(&r->e[VN_REPLAY_OWN], j->value);
		if (!m)
			continue;
		const vn_tensor z = { m->dtype, m->shape, m->data };
		st = vn_reference_variant_judges_alone(node, i) ? vn_local_alone(&z, j->cand, j->axes, threads, j->l, err)
		                                                : vn_local_other(&z, j->own, j->axes, threads, &j->most, err);
	}
	return st;
}

vn_status vn_replay_allow(vn_replay *r, const vn_node *node, const vn_node_output *own, const vn_tensor *cand,
                          const char *axes, vn_replayed *l, vn_error *err)
{
	vn_replay_engine      *e = &r->e[VN_REPLAY_OWN];
	const int              k = (int)(node - r->plan->node);
	const int              others = l->bad ? 0 : vn_reference_variants_count(node, e->policy);
	const vn_tensor        a = { own->dtype, own->shape, own->data };
	const vn_replay_engine unmodified = *e;
	judged                 j = { .value = own->value, .own = &a, .cand = cand, .axes = axes, .l = l };
	drawn                  d[2] = { { 0 }, { 0 } };
	vn_error               none;
	vn_status              st;

	if (!others)
		return VN_OK;
	memset(e->out, 0, sizeof e->out);
	st = take_inputs(r, node, d, err);
	for (int i = 0; !st && i < others; i++) {
		vn_reference_variant_put(&r->other->node[k], e->policy, i);
		st = run_other(r, k, i, &j, d, err);
		r->other->node[k] = *node;
	}
	for (size_t i = 0; i < sizeof e->out / sizeof *e->out; i++)
		vn_node_output_free(&e->out[i]);
	memcpy(e->out, unmodified.out, sizeof e->out);
	vn_local_allow(l, &j.most);
	const vn_status back = put_back(r, d, st ? &none : err);
	return st ? st : back ? back : run_own(r, k, err);
}
