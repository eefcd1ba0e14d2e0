/* eval_real.c: eval.h in one width; built for both. */
#include "libref/exec/eval.h"

#include "libref/exec/convert.h"
#include "libref/ops/ops.h"
#include "libref/ops/roles.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A weight vector as reals, rounded to the policy's storage format; repeated, if n is larger. */
static real *load_vector(const vn_tensor *w, vn_policy policy, size_t n)
{
	const size_t all = (size_t)vn_shape_count(&w->shape);
	real        *v = malloc(((n > all ? n : all) + 1) * sizeof *v);

	if (v)
		REAL(vn_load)(v, w->data, w->dtype, policy.storage, all);
	for (size_t i = all; v && i < n; i++)
		v[i] = v[i - all];
	return v;
}

#if VN_REAL == 32
/* Computes a product in the policies of a and of a->also. */
static bool compute_both(const vn_args *a, const vn_operands *f, real *out)
{
	VN_FREED real *other = a->w[1] ? load_vector(a->w[1], a->also->policy, 0) : NULL;
	const bool     ok = (!a->w[1] || other) &&
	                vn_linear_also_f32(out, f, &(vn_also_f32) { a->also->out, other, a->also->policy });

	if (ok)
		vn_round_shared(a->also->out, vn_policy_dtype(a->also->policy, a->also->wide), (size_t)(a->tokens * f->w->M),
		                a->threads);
	return ok;
}
#endif

static bool compute_plain(const vn_args *a, const vn_operands *f, real *out)
{
	(void)a; /* in double */
#if VN_REAL == 32
	if (a->also)
		return compute_both(a, f, out);
	if (a->policy.sums == VN_F16)
		return vn_linear_acc16(out, f);
	if (vn_linear_is_small(f->w, a->of ? a->of : a->tokens))
		return vn_linear_wide(out, f);
#endif
	return REAL(vn_linear)(out, f);
}

/* The format of what `linear` multiplies. */
static vn_role_format operands(vn_policy p)
{
	return p.role[VN_ROLE_PRODUCTS] ? p.role[VN_ROLE_PRODUCTS] : p.role[VN_ROLE_LINEAR];
}

/* Copies row m of a matrix to row (N), or back. */
static void copy_row(float *w, double *row, const vn_matrix *as, int64_t m, bool back)
{
	const int64_t step = as->transposed ? as->M : 1, first = as->transposed ? m : m * as->N;
	for (int64_t n = 0; n < as->N; n++)
		if (back)
			w[first + n * step] = (float)row[n];
		else
			row[n] = (double)w[first + n * step];
}

/* Makes a copy of the matrix as the roles have it: weights, then operands. The caller frees
 * copy->data. */
static bool narrow_matrix(const vn_matrix *w, vn_policy p, int threads, vn_tensor *copy)
{
	const size_t n = (size_t)(w->M * w->N);
	float       *data = malloc(n * sizeof *data + 1);
	bool         good = data;

	*copy = (vn_tensor) { VN_F32, w->w->shape, data };
	if (data)
		vn_to_f32(data, w->w->data, w->w->dtype, n);
#pragma omp parallel num_threads(threads) reduction(&& : good)
	{
		double *row = malloc((size_t)w->N * sizeof *row + 1);
		good = good && row;
#pragma omp for schedule(static)
		for (int64_t m = 0; m < w->M; m++) {
			if (!data || !row)
				continue;
			copy_row(data, row, w, m, false);
			vn_role_round(row, w->N, p.role[VN_ROLE_WEIGHTS]);
			if (!vn_role_of_inputs(operands(p)))
				vn_role_round(row, w->N, operands(p));
			copy_row(data, row, w, m, true);
		}
		free(row);
	}
	return good;
}

/* A product of which the policy narrows the matrix, the inputs, or both. */
static bool compute_narrow(const vn_args *a, const vn_operands *given, real *out)
{
	const vn_role_format f = operands(a->policy);
	const size_t         n = (size_t)(a->tokens * given->w->N);
	VN_FREED real       *x = malloc(n * sizeof *x + 1);
	vn_tensor            copy = { 0 };
	bool                 good = x && narrow_matrix(given->w, a->policy, a->threads, &copy);

	if (good) {
		const vn_matrix narrow = vn_matrix_of(&copy, given->w->transposed);
		vn_operands     own = *given;
		own.x = x;
		own.w = &narrow;
		memcpy(x, given->x, n * sizeof *x);
		if (f)
			REAL(vn_role_rows)(x, a->tokens, given->w->N, f, false, a->threads);
		good = compute_plain(a, &own, out);
	}
	free((void *)(uintptr_t)copy.data);
	return good;
}

static bool has_roles(vn_policy p)
{
	return p.role[VN_ROLE_WEIGHTS] || operands(p);
}

static bool compute_product(const vn_args *a, const vn_operands *f, real *out)
{
	return (has_roles(a->policy) ? compute_narrow : compute_plain)(a, f, out);
}

/* Adds b to y, and rounds the sum. */
static void add_rounded(real *y, const real *b, size_t n, int rounding)
{
	for (size_t i = 0; i < n; i++)
		y[i] = (real)vn_in_format((double)y[i] + (double)b[i], rounding);
}

/* The sum of the products of e->linear.parts ranges of columns. */
static bool compute_parts(const vn_args *a, const vn_operands *whole, const vn_experiment *e, real *out)
{
	const int64_t  N = whole->w->N, parts = e->linear.parts;
	const size_t   n = (size_t)(a->tokens * whole->w->M);
	const real    *x = whole->x;
	VN_FREED real *some = malloc((size_t)(a->tokens * N) * sizeof *some + 1), *y = malloc(n * sizeof *y + 1);
	bool           ok = some && y;

	memset(out, 0, n * sizeof *out);
	for (int64_t r = 0; ok && r < parts; r++) {
		vn_operands f = *whole;
		f.x = some;
		f.bias = NULL;
		for (int64_t i = 0; i < a->tokens * N; i++)
			some[i] = i % N >= r * N / parts && i % N < (r + 1) * N / parts ? x[i] : 0;
		if ((ok = compute_product(a, &f, y))) {
			for (size_t i = 0; i < n; i++)
				y[i] = (real)vn_in_format((double)y[i], e->linear.rounding);
			add_rounded(out, y, n, e->linear.rounding);
		}
	}
	for (int64_t t = 0; ok && whole->bias && t < a->tokens; t++)
		add_rounded(out + t * whole->w->M, whole->bias, (size_t)whole->w->M, e->linear.rounding);
	return ok;
}

/* A product of inputs, matrix and bias in a format, with its result in that format. */
static bool compute_in_format(const vn_args *a, const vn_operands *given, vn_rounding_format format, real *out)
{
	const size_t   rows = (size_t)a->tokens, N = (size_t)given->w->N, M = (size_t)given->w->M;
	VN_FREED real *x = malloc((rows * N + N * M + M) * sizeof *x);
	real          *w = x + rows * N, *b = w + N * M;

	if (!x)
		return false;
	memcpy(x, given->x, rows * N * sizeof *x);
	REAL(vn_load)(w, given->w->w->data, given->w->w->dtype, a->policy.storage, N * M);
	if (given->bias)
		memcpy(b, given->bias, M * sizeof *b);
	for (real *y = x; y < b + (given->bias ? M : 0); y++)
		*y = (real)vn_in_format((double)*y, format);
	const vn_tensor copy = { VN_REAL == 32 ? VN_F32 : VN_F64, given->w->w->shape, w };
	const vn_matrix narrow = vn_matrix_of(&copy, given->w->transposed);
	vn_operands     own = *given;
	own.x = x;
	own.w = &narrow;
	own.bias = given->bias ? b : NULL;
	const bool good = compute_product(a, &own, out);
	for (size_t i = 0; good && i < rows * M; i++)
		out[i] = (real)vn_in_format((double)out[i], format);
	return good;
}

static bool compute_linear(const vn_node *n, const vn_args *a, const vn_experiment *e, const real *bias, real *out)
{
	const vn_matrix w = vn_matrix_of(a->w[0], n->c.linear.transposed != 0);
	const vn_dtype  kept = n->c.linear.kept ? (vn_dtype)(n->c.linear.kept - 1) : a->w[0]->dtype;
	const bool      rounds = a->policy.products && !has_roles(a->policy) && vn_ggml_rounds(kept);
	vn_operands     f = { a->in[0], &w, bias, a->tokens, a->policy, a->threads };
	bool            ok = true;
	VN_FREED real  *x = NULL;
	VN_FREED float *sums = NULL;

	if (e && e->linear.parts)
		return compute_parts(a, &f, e, out);
	if (e && e->linear.format)
		return compute_in_format(a, &f, (vn_rounding_format)e->linear.format, out);
	if (rounds) {
		ok = REAL(vn_ggml_input)(&f, kept, e ? (vn_ggml_scale)e->linear.inverse : VN_GGML_DIVIDED, &x, &sums);
		f.x = x;
	}
	ok = ok && compute_product(a, &f, out);
	if (ok && sums)
		REAL(vn_ggml_add_sums)(out, sums, &w, a->tokens, a->threads);
	return ok;
}

/* A product with the weights of an expert; context: vn_args and node of all of them. */
typedef struct expert_work {
	const vn_node *n;
	const vn_args *a;
} expert_work;

static bool expert_product(void *context, int kind, int64_t expert, const real *x, int64_t n, real *y)
{
	const expert_work *w = context;
	const vn_tensor   *b = w->a->w[VN_EXPERT_KINDS + kind];
	vn_node            one = { .op = VN_OP_LINEAR, .c.linear.kept = w->n->c.experts.kept[kind] };
	vn_args            a = { .policy = w->a->policy,
		                     .threads = w->a->threads,
		                     .tokens = n,
		                     .of = w->a->of ? w->a->of : w->a->tokens,
		                     .in = { x },
		                     .w = { w->a->w[kind] + expert, b ? b + expert : NULL } };
	VN_FREED real     *bias = b ? load_vector(a.w[1], a.policy, 0) : NULL;
	const bool         ok = (!b || bias) && compute_linear(&one, &a, NULL, bias, y);

	return ok;
}

static bool run_experts(const vn_node *n, const vn_args *a, const vn_experiment *e, int64_t row, int64_t D, real *out)
{
	return REAL(vn_experts)(out, &(REAL(vn_experts_in)) { .rows = a->in[VN_EXPERTS_X],
	                                                      .ids = a->in[VN_EXPERTS_IDS],
	                                                      .T = a->tokens,
	                                                      .k = row / D,
	                                                      .D = D,
	                                                      .F = a->w[VN_EXPERT_GATE]->shape.dim[0],
	                                                      .product = expert_product,
	                                                      .context = &(expert_work) { n, a },
	                                                      .c = &n->c,
	                                                      .x = e,
	                                                      .policy = a->policy,
	                                                      .past = a->past,
	                                                      .begins = a->begins,
	                                                      .threads = a->threads });
}

static bool delta_rule(const vn_node *n, const vn_args *a, const vn_experiment *e, real *out)
{
	return REAL(vn_delta_rule)(out, &(REAL(vn_delta)) { a->in[VN_DELTA_Q], a->in[VN_DELTA_K], a->in[VN_DELTA_V],
	                                                    a->in[VN_DELTA_G], a->in[VN_DELTA_BETA], a->state[0], a->tokens,
	                                                    n->c.delta.key_heads, n->c.delta.value_heads,
	                                                    n->c.delta.key_dim, n->c.delta.value_dim, n->c.delta.scale,
	                                                    a->past, a->begins, e, a->threads });
}

static void compute_scale(const vn_node *n, const vn_args *a, const vn_experiment *e, int64_t count, real *out)
{
	vn_consts c = n->c;
	real      scale = (real)c.scale.scale;

#if VN_REAL == 32
	vn_round_f32(&scale, a->policy.storage, 1);
#endif
	c.scale.scale = (double)scale;
	REAL(vn_multiply)(out, a->in[0], &c, e, count, a->threads);
}

/* sinks: (H), or NULL */
static REAL(vn_attend) attend_of(const vn_node *n, const vn_args *a, const real *sinks)
{
	return (REAL(vn_attend)) { .q = a->in[VN_ATTN_Q],
		                       .k = a->state[VN_ATTN_KEYS],
		                       .v = a->state[VN_ATTN_VALUES],
		                       .sinks = sinks,
		                       .past = a->past,
		                       .tokens = a->tokens,
		                       .prompt = a->prompt,
		                       .c = &n->c,
		                       .x = vn_node_experiment(n),
		                       .begins = a->begins,
		                       .threads = a->threads,
		                       .policy = a->policy };
}

/* Where the call of a token begins, counted from the first token of this one. */
static int64_t call_of(const vn_args *a, int64_t t)
{
	return a->begins && a->begins[t] > 0 ? a->begins[t] - a->past : 0;
}

/* Every second id is the upper half of the one before: 0. */
static void embed_words(const vn_args *a, int64_t row, real *out)
{
	for (int64_t t = 0; t < a->tokens; t++) {
		const int64_t from = call_of(a, t);
		const int32_t id = (t - from) % 2 ? 0 : a->ids[from + (t - from) / 2];
		REAL(vn_embed)(out + t * row, a->w[0], &id, 1, row, a->policy);
	}
}

/* A position behind the table is its last one. */
static void look_up_others(const vn_args *a, const vn_experiment *e, int64_t row, real *out)
{
	const int64_t most = a->w[0]->shape.dim[0] - 1;

	for (int64_t t = 0; t < a->tokens; t++) {
		const int64_t from = call_of(a, t), at = a->past + t,
					  to = e->positions.step_twice ? at + a->past + from
		                   : (t - from) % 2        ? 0
		                                           : a->past + from + (t - from) / 2;
		REAL(vn_positions)(out + t * row, a->w[0], to < most ? to : most, 1, row, a->policy);
	}
}

/* Rows of N numbers each, `count` in all. */
static void compute_norm(const vn_node *n, const vn_args *a, real *const *v, int64_t N, int64_t count, real *out)
{
	const vn_experiment *e = vn_node_experiment(n);
	const REAL(vn_normed) x = { a->in[0], a->in[1], v[0], v[1], count / N, N, &n->c.norm, e, a->threads };

	(n->op == VN_OP_RMS_NORM     ? REAL(vn_rms_norm)
	 : n->op == VN_OP_LAYER_NORM ? REAL(vn_layer_norm)
	 : n->op == VN_OP_GATED_NORM ? REAL(vn_gated_norm)
	                             : REAL(vn_l2_norm))(out, &x);
}

/* v: weights that the operation takes as vectors. */
static bool compute(const vn_node *n, const vn_args *a, real *const *v, int64_t row, int64_t dim, real *out)
{
	const vn_experiment *e = vn_node_experiment(n);
	const int64_t        count = a->tokens * row; /* elements of the output */
	REAL(vn_attend) attend;

	switch (n->op) {
	case VN_OP_EMBED:
		if (e)
			embed_words(a, row, out);
		else
			REAL(vn_embed)(out, a->w[0], a->ids, a->tokens, row, a->policy);
		return true;
	case VN_OP_POSITIONS:
		if (e && (e->positions.step_twice || e->positions.words))
			look_up_others(a, e, row, out);
		else
			REAL(vn_positions)(out, a->w[0], e && e->positions.step_zero ? 0 : a->past, a->tokens, row, a->policy);
		return true;
	case VN_OP_RMS_NORM:
	case VN_OP_LAYER_NORM:
	case VN_OP_GATED_NORM:
	case VN_OP_L2_NORM:
		compute_norm(n, a, v,
		             n->op == VN_OP_RMS_NORM && e && e->norm.width ? e->norm.width
		             : a->w[0]                                     ? vn_shape_count(&a->w[0]->shape)
		                                                           : dim,
		             count, out);
		return true;
	case VN_OP_LINEAR: return compute_linear(n, a, e, v[1], out);
	case VN_OP_SLICE:
		REAL(vn_slice)(out, a->in[0], count / n->c.slice.width, n->c.slice.stride, n->c.slice.from, n->c.slice.width);
		return true;
	case VN_OP_ROPE:
		return REAL(vn_rotate)(out, a->in[0],
		                       &(vn_rope_input) { &n->c.rope.rope, e ? &e->rope : NULL, a->lists, a->ids, a->begins,
		                                          a->past, a->prompt, a->tokens, row / dim, dim, a->threads });
	case VN_OP_ATTENTION: attend = attend_of(n, a, v[VN_ATTN_SINKS]); return REAL(vn_attention)(out, &attend);
	case VN_OP_SCALE: compute_scale(n, a, e, count, out); return true;
	case VN_OP_ACT: REAL(vn_gated)(out, (const real *[]) { a->in[0], NULL }, &n->c, e, count, a->threads);
#if VN_REAL == 32
		if (a->policy.products && n->c.act.act == VN_GELU_TANH && !(e && e->act.rounding))
			vn_ggml_gelu(out, a->in[0], count);
#endif
		return true;
	case VN_OP_GATED:
		REAL(vn_gated)(out, (const real *[]) { a->in[0], a->in[1] }, &n->c, e, count, a->threads);
		return true;
	case VN_OP_ADD: REAL(vn_add)(out, a->in[0], a->in[1], count, a->threads); return true;
	case VN_OP_CAUSAL_CONV:
		return REAL(vn_causal_conv)(
			out, &(REAL(vn_conv)) { a->in[0], v[0], a->state[0], a->tokens, &n->c, e, a->past, a->begins, a->threads });
	case VN_OP_LOG_DECAY: REAL(vn_log_decay)(out, a->in[0], v, a->tokens, row, e); return true;
	case VN_OP_ROWS: /* an experiment itself */
		REAL(vn_rows)(out, (const real *[]) { a->in[0], a->in[1] }, a->past, a->tokens, row, &n->x, a->threads);
		return true;
	case VN_OP_DELTA_RULE: return delta_rule(n, a, e, out);
	case VN_OP_DELAY:
		REAL(vn_delay)(out, &(REAL(vn_delayed)) { a->in[0], a->state[0], a->tokens, row, a->past, a->begins, e });
		return true;
	case VN_OP_JOIN: REAL(vn_join)(out, (const real *[]) { a->in[0], a->in[1] }, a->tokens, dim, &n->c); return true;
	case VN_OP_TOP_K: return REAL(vn_top_k)(out, (const real *[]) { a->in[0], v[0] }, a->tokens, &n->c, e, a->threads);
	case VN_OP_ROUTE:
		REAL(vn_route)(out, (const real *[]) { a->in[0], a->in[1], v[0] }, a->tokens, row, &n->c, e, a->threads);
		return true;
	case VN_OP_EXPERTS: return run_experts(n, a, e, row, dim, out);
	case VN_OP_COMBINE:
		REAL(vn_combine)(out, (const real *[]) { a->in[0], a->in[1] }, a->tokens, row, &n->c, e, a->threads);
		return true;
	case VN_N_OPS: break;
	}
	assert(0);
	return false;
}

/* Would more threads only wait for each other? The work is counted in multiplications, roughly:
 * reading a weight or a key costs as much as some, and so does a number that is not a product. */
static bool is_small(const vn_node *n, const vn_args *a, int64_t row)
{
	enum { ENOUGH = 16 << 20, WEIGHT = 64, KEY = 8, NUMBER = 64 };
	const double T = (double)a->tokens, out = (double)row;
	double       work = NUMBER * T * out;

	if (n->op == VN_OP_DELTA_RULE)
		return false;
	if (n->op == VN_OP_LINEAR)
		work = (T + WEIGHT) * (double)vn_shape_count(&a->w[0]->shape);
	else if (n->op == VN_OP_EXPERTS)
		work = VN_EXPERT_KINDS * (T + WEIGHT) * out * (double)a->w[VN_EXPERT_GATE]->shape.dim[0];
	else if (n->op == VN_OP_ATTENTION)
		work = 2 * (T + KEY) * (double)(a->past + a->tokens) * out;
	return work < ENOUGH;
}

static vn_status evaluate_node(const vn_node *n, const vn_args *args, int64_t row, int64_t dim, void *out,
                               vn_error *err)
{
	vn_args              few = *args;
	const vn_args       *a = &few;
	const vn_experiment *e = vn_node_experiment(n);
	/* a table or a matrix is read where it is stored */
	const int            stored = n->op == VN_OP_EXPERTS
	                                  ? VN_MAX_W
	                                  : n->op == VN_OP_EMBED || n->op == VN_OP_POSITIONS || n->op == VN_OP_LINEAR;
	const int            width = e && n->op == VN_OP_RMS_NORM ? e->norm.width : 0;
	real                *v[VN_MAX_W] = { 0 };
	vn_policy            policy = a->policy;
	bool                 ok = true;

	if (VN_REAL == 32 && (n->op == VN_OP_TOP_K || n->op == VN_OP_ROUTE)) /* models keep this bias apart */
		policy.storage = VN_F32;
	if (VN_REAL == 32 && e && vn_op_get(n->op)->is_norm && e->norm.wide_weight)
		policy.storage = VN_F32;
	few.threads = is_small(n, args, row) ? 1 : args->threads;
	for (int k = stored; k < VN_MAX_W; k++)
		ok = ok && (!a->w[k] || (v[k] = load_vector(a->w[k], policy, (size_t)width)));
	ok = ok && compute(n, a, v, row, dim, out);
	for (int k = 0; k < VN_MAX_W; k++)
		free(v[k]);
	if (!ok)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %s of %lld tokens", vn_op_name(n->op), (long long)a->tokens);
#if VN_REAL == 32
	vn_round_shared(out, vn_policy_dtype(a->policy, a->wide), (size_t)(a->tokens * row), a->threads);
#endif
	return VN_OK;
}

static vn_status evaluate_rows(const vn_node *n, const vn_args *a, vn_score_rows s, void *out, vn_error *err)
{
	real *sinks = a->w[VN_ATTN_SINKS] ? load_vector(a->w[VN_ATTN_SINKS], a->policy, 0) : NULL;
	REAL(vn_attend) at = attend_of(n, a, sinks);
	const bool ok = (!a->w[VN_ATTN_SINKS] || sinks) && REAL(vn_attention_rows)(out, &at, s.slot, s.head, s.row, s.rows);

	free(sinks);
	if (!ok)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for attention rows over %lld keys",
		               (long long)(a->past + a->tokens));
#if VN_REAL == 32
	vn_round_f32(out, a->policy.storage, (size_t)(s.rows * (a->past + a->tokens)));
#endif
	return VN_OK;
}

static void round_rows(void *x, int64_t rows, int64_t n, vn_role_format f, bool other_ties, int threads)
{
	REAL(vn_role_rows)(x, rows, n, f, other_ties, threads);
}

const vn_eval REAL(vn_evaluator) = { VN_REAL_DTYPE, evaluate_node, evaluate_rows, round_rows };
