/* eval_real.c: eval.h in one width; built for both. */
#include "libref/exec/eval_real.h"

#include "libref/exec/convert.h"
#include "libref/ops/ops.h"

#include <assert.h>
#include <stdlib.h>

/* A weight vector (N) as reals, rounded to the policy's storage format. */
static real *load_vector(const vn_tensor *w, vn_policy policy)
{
	size_t n = (size_t)vn_shape_count(&w->shape);
	real  *v = malloc((n ? n : 1) * sizeof *v);

	if (v)
		REAL(vn_load)(v, w->data, w->dtype, policy.storage, n);
	return v;
}

#if VN_REAL == 32
/* Computes a product in the policies of a and of a->also. */
static bool compute_both(const vn_args *a, const vn_matrix *w, const real *bias, real *out)
{
	real      *other = a->w[1] ? load_vector(a->w[1], a->also->policy) : NULL;
	const bool ok = (!a->w[1] || other) &&
	                vn_linear_also_f32(out, a->in[0], w, bias, a->tokens, a->policy,
	                                   &(vn_also_f32) { a->also->out, other, a->also->policy }, a->threads);

	if (ok)
		vn_round_shared(a->also->out, vn_policy_dtype(a->also->policy, a->also->wide), (size_t)(a->tokens * w->M),
		                a->threads);
	free(other);
	return ok;
}
#endif

static bool compute_product(const vn_args *a, const real *x, const vn_matrix *w, const real *bias, real *out)
{
#if VN_REAL == 32
	if (a->also)
		return compute_both(a, w, bias, out);
	if (a->policy.sums == VN_F16)
		return vn_linear_acc16(out, x, w, bias, a->tokens, a->threads);
	if (vn_linear_is_small(w, a->of ? a->of : a->tokens))
		return vn_linear_wide(out, x, w, bias, a->tokens, a->policy, a->threads);
#endif
	return REAL(vn_linear)(out, x, w, bias, a->tokens, a->policy, a->threads);
}

static bool compute_linear(const vn_node *n, const vn_args *a, const vn_experiment *e, real *out)
{
	const vn_matrix w = vn_matrix_of(a->w[0], n->c.linear.transposed != 0);
	const vn_dtype  kept = n->c.linear.kept ? (vn_dtype)(n->c.linear.kept - 1) : a->w[0]->dtype;
	const bool      rounds = a->policy.products && vn_ggml_rounds(kept);
	real           *bias = a->w[1] ? load_vector(a->w[1], a->policy) : NULL;
	bool            ok = !a->w[1] || bias;
	real           *x = NULL;
	float          *sums = NULL;

	if (ok && rounds)
		ok = REAL(vn_ggml_input)(a->in[0], &w, kept, e ? (vn_ggml_scale)e->linear.inverse : VN_GGML_DIVIDED, a->tokens,
		                         a->threads, &x, &sums);
	ok = ok && compute_product(a, rounds ? x : a->in[0], &w, bias, out);
	if (ok && sums)
		REAL(vn_ggml_add_sums)(out, sums, &w, a->tokens, a->threads);
	free(sums);
	free(x);
	free(bias);
	return ok;
}

/* A weight vector repeated to the row width N. */
static real *load_repeated(const vn_tensor *w, int64_t N, vn_policy policy)
{
	const int64_t n = w->shape.dim[0];
	real         *once = load_vector(w, policy), *v = n == N ? once : malloc((size_t)N * sizeof *v);

	for (int64_t i = 0; once && v && v != once && i < N; i++)
		v[i] = once[i % n];
	if (v != once)
		free(once);
	return v;
}

/* All norms with a weight. */
static bool compute_norm(const vn_node *n, const vn_args *a, const vn_experiment *e, int64_t count, real *out)
{
	const int64_t  N = e && e->norm.width ? e->norm.width : a->w[0]->shape.dim[0], R = count / N;
	const vn_norm *c = &n->c.norm;
	real          *g = load_repeated(a->w[0], N, a->policy), *bias = a->w[1] ? load_vector(a->w[1], a->policy) : NULL;
	const bool     ok = g && (bias || !a->w[1]);

	if (ok && n->op == VN_OP_LAYER_NORM)
		REAL(vn_layer_norm)(out, a->in[0], g, bias, R, N, c, e, a->threads);
	else if (ok && n->op == VN_OP_GATED_NORM)
		REAL(vn_gated_norm)(out, a->in[0], a->in[1], g, R, N, c, e, a->threads);
	else if (ok)
		REAL(vn_rms_norm)(out, a->in[0], g, R, N, c, e, a->threads);
	free(g);
	free(bias);
	return ok;
}

static bool compute_conv(const vn_node *n, const vn_args *a, const vn_experiment *e, real *out)
{
	real *w = load_vector(a->w[0], a->policy);
	bool  ok = w && REAL(vn_causal_conv)(out, a->in[0], w, a->state[0], a->tokens, &n->c, e,
                                        e && e->conv.forgets && a->past > 0, a->threads);

	free(w);
	return ok;
}

static bool log_decay(const vn_args *a, const vn_experiment *e, int64_t row, real *out)
{
	real *A_log = load_vector(a->w[0], a->policy), *dt_bias = load_vector(a->w[1], a->policy);
	bool  ok = A_log && dt_bias;

	if (ok)
		REAL(vn_log_decay)(out, a->in[0], A_log, dt_bias, a->tokens, row, e);
	free(A_log);
	free(dt_bias);
	return ok;
}

static bool delta_rule(const vn_node *n, const vn_args *a, const vn_experiment *e, real *out)
{
	return REAL(vn_delta_rule)(out,
	                           &(REAL(vn_delta)) { a->in[VN_DELTA_Q], a->in[VN_DELTA_K], a->in[VN_DELTA_V],
	                                               a->in[VN_DELTA_G], a->in[VN_DELTA_BETA], a->state[0], a->tokens,
	                                               n->c.delta.key_heads, n->c.delta.value_heads, n->c.delta.key_dim,
	                                               n->c.delta.value_dim, n->c.delta.scale, a->past, e, a->threads });
}

static REAL(vn_attend) attend_of(const vn_node *n, const vn_args *a)
{
	return (REAL(vn_attend)) { .q = a->in[VN_ATTN_Q],
		                       .k = a->state[VN_ATTN_KEYS],
		                       .v = a->state[VN_ATTN_VALUES],
		                       .past = a->past,
		                       .tokens = a->tokens,
		                       .c = &n->c,
		                       .x = vn_node_experiment(n),
		                       .threads = a->threads,
		                       .products = a->policy.products };
}

vn_status REAL(vn_eval_node)(const vn_node *n, const vn_args *a, int64_t row, int64_t dim, void *out, vn_error *err)
{
	const vn_experiment *e = vn_node_experiment(n);
	const int64_t        count = a->tokens * row; /* elements of the output */
	bool                 ok = true;

	switch (n->op) {
	case VN_OP_EMBED: REAL(vn_embed)(out, a->w[0], a->ids, a->tokens, row, a->policy); break;
	case VN_OP_POSITIONS:
		REAL(vn_positions)(out, a->w[0], e && e->positions.step_zero ? 0 : a->past, a->tokens, row, a->policy);
		break;
	case VN_OP_RMS_NORM:
	case VN_OP_LAYER_NORM:
	case VN_OP_GATED_NORM: ok = compute_norm(n, a, e, count, out); break;
	case VN_OP_LINEAR: ok = compute_linear(n, a, e, out); break;
	case VN_OP_SLICE:
		REAL(vn_slice)(out, a->in[0], count / n->c.slice.width, n->c.slice.stride, n->c.slice.from, n->c.slice.width);
		break;
	case VN_OP_ROPE:
		ok = REAL(vn_rotate)(out, a->in[0], &n->c.rope.rope, e ? &e->rope : NULL, a->lists, a->past, a->tokens,
		                     row / dim, dim, a->threads);
		break;
	case VN_OP_ATTENTION: {
		REAL(vn_attend) at = attend_of(n, a);
		ok = REAL(vn_attention)(out, &at);
		break;
	}
	case VN_OP_ACT: REAL(vn_gated)(out, a->in[0], NULL, &n->c, e, count, a->threads);
#if VN_REAL == 32
		if (a->policy.products && n->c.act.act == VN_GELU_TANH && !(e && e->act.rounding))
			vn_ggml_gelu(out, a->in[0], count);
#endif
		break;
	case VN_OP_GATED: REAL(vn_gated)(out, a->in[0], a->in[1], &n->c, e, count, a->threads); break;
	case VN_OP_ADD: REAL(vn_add)(out, a->in[0], a->in[1], count, a->threads); break;
	case VN_OP_CAUSAL_CONV: ok = compute_conv(n, a, e, out); break;
	case VN_OP_L2_NORM: REAL(vn_l2_norm)(out, a->in[0], count / dim, dim, &n->c.norm, e, a->threads); break;
	case VN_OP_LOG_DECAY: ok = log_decay(a, e, row, out); break;
	case VN_OP_ROWS: /* an experiment itself */
		REAL(vn_rows)(out, a->in[0], a->in[1], a->past, a->tokens, row, &n->x);
		break;
	case VN_OP_DELTA_RULE: ok = delta_rule(n, a, e, out); break;
	case VN_N_OPS: assert(0);
	}
	if (!ok)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %s of %lld tokens", vn_op_name(n->op), (long long)a->tokens);
#if VN_REAL == 32
	vn_round_shared(out, vn_policy_dtype(a->policy, a->wide), (size_t)count, a->threads);
#endif
	return VN_OK;
}

vn_status REAL(vn_eval_rows)(const vn_node *n, const vn_args *a, int slot, int64_t head, int64_t row, int64_t rows,
                             void *out, vn_error *err)
{
	REAL(vn_attend) at = attend_of(n, a);

	if (!REAL(vn_attention_rows)(out, &at, slot == VN_ATTN_SCORES ? VN_WANT_SCORES : VN_WANT_PROBS, head, row, rows))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for attention rows over %lld keys",
		               (long long)(a->past + a->tokens));
#if VN_REAL == 32
	vn_round_f32(out, a->policy.storage, (size_t)(rows * (a->past + a->tokens)));
#endif
	return VN_OK;
}
