/* test_ops.c: every operation in both widths, against plain loops in double.
 * What only some families use is in test_ops_gpt2.c. */
#include "libref/ops/blas.h"
#include "libref/ops/exp.h"
#include "libref/ops/rope_table.h"
#include "tests/support/suite.h"
#include "tests/support/test_ops_help.h"

#include <stdio.h>

/* ---- embed, norm, elementwise ------------------------------------------------------------ */

static void embedding_rows_are_the_rows_of_the_matrix(void)
{
	const int32_t ids[] = { 4, 0, 6, 6, 1 };
	const int     D[] = { 1, 7, 8, 33 };

	for (size_t k = 0; k < 4; k++)
		for (int pi = 0; pi < N_POLICIES; pi++)
			for (int d = 0; d < VN_N_ENGINE_DTYPES; d++) {
				double         *w = draws(7 * D[k]);
				void           *raw;
				const vn_tensor t = stored(w, (vn_dtype)d, 2, 7, D[k], (size_t)(d % 2), &raw);
				const vn_node   n = { .op = VN_OP_EMBED };
				const vn_args   a = { .policy = policies[pi], .threads = 2, .tokens = 5, .ids = ids, .w = { &t } };
				double         *y = eval(&n, &a, D[k], D[k]);
				vn_to_f64(w, t.data, t.dtype, (size_t)(7 * D[k])); /* bf16 has rounded them */
				for (int i = 0; i < 5; i++)
					CU_ASSERT(same(y + i * D[k], w + ids[i] * D[k], D[k]));
				free(raw), free(y), free(w);
			}
}

static void rms_norm_is_its_formula(void)
{
	const struct {
		int    T, heads, N;
		double eps;
	} row[] = {
		{ 1, 1, 1, 1e-6 },    { 2, 1, 3, 1e-6 },   { 3, 4, 5, 0 },
		{ 17, 1, 896, 1e-5 }, { 65, 2, 64, 1e-6 }, { 3, 1, 4096, 1e-6 },
	};

	for (size_t k = 0; k < sizeof row / sizeof *row; k++)
		for (int pi = 0; pi < N_POLICIES; pi++) {
			const int       N = row[k].N, R = row[k].T * row[k].heads;
			double         *x = draws(R * N), *g = draws(N), *want = malloc((size_t)(R * N) * 8);
			void           *raw, *in = widened(x, R * N, policies[pi]);
			const vn_tensor t = stored(g, VN_F16, 1, N, 0, 1, &raw);
			const vn_node   n = { .op = VN_OP_RMS_NORM, .c.norm.eps = row[k].eps };
			const vn_args   a = { .policy = policies[pi], .threads = 2, .tokens = row[k].T, .in = { in }, .w = { &t } };
			for (int r = 0; r < R; r++) {
				double ss = 0;
				for (int i = 0; i < N; i++)
					ss += x[r * N + i] * x[r * N + i];
				for (int i = 0; i < N; i++)
					want[r * N + i] = x[r * N + i] / sqrt(ss / N + row[k].eps) * g[i];
			}
			double *y = eval(&n, &a, (int64_t)row[k].heads * N, N), *size = malloc((size_t)(R * N) * 8);
			for (int i = 0; i < R * N; i++)
				size[i] = fabs(want[i]);
			compare(y, want, size, R * N, slack(policies[pi], policies[pi].storage == VN_F64 ? 40 : 1), "rms_norm");
			free(x), free(g), free(want), free(raw), free(in), free(y), free(size);
		}
}

static void a_row_of_zeros_norms_to_zeros_and_not_to_nan(void)
{
	double          zero[8] = { 0 }, one[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	void           *raw, *in = widened(zero, 8, F32);
	const vn_tensor t = stored(one, VN_F32, 1, 8, 0, 0, &raw);
	const vn_node   n = { .op = VN_OP_RMS_NORM, .c.norm.eps = 1e-6 };
	const vn_args   a = { .policy = F32, .threads = 1, .tokens = 1, .in = { in }, .w = { &t } };
	double         *y = eval(&n, &a, 8, 8);

	CU_ASSERT(same(y, zero, 8));
	free(raw), free(in), free(y);
}

/* Formulas of models.md 1.3 in float64, nine digits. */
static void silu_has_the_values_of_the_specification_at_both_ends_too(void)
{
	const double x[] = { -3, -1, -0.5, 0.5, 1, 3, 0, 90, -90, 1000, -1000 };
	const double want[] = {
		-0.142277620, -0.268941421, -0.188770334, 0.311229666, 0.731058579, 2.857722380, 0, 90, 0, 1000, 0
	};
	const vn_node n = { .op = VN_OP_ACT, .c.act.act = VN_SILU };

	for (int pi = 0; pi < N_POLICIES; pi++) {
		void         *in = widened(x, 11, policies[pi]);
		const vn_args a = { .policy = policies[pi], .threads = 2, .tokens = 11, .in = { in } };
		double       *y = eval(&n, &a, 1, 1);
		for (int i = 0; i < 11; i++)
			CU_ASSERT(fabs(y[i] - want[i]) <= 1e-9 + slack(policies[pi], 1) * fabs(want[i]));
		free(in), free(y);
	}
}

static void gated_and_added_are_their_formulas(void)
{
	const int n[] = { 1, 2, 3, 17, 65, 1000 };

	for (size_t k = 0; k < 6; k++)
		for (int pi = 0; pi < N_POLICIES; pi++) {
			const int64_t c = n[k] * 3;
			double       *u = draws(c), *v = draws(c), *want = malloc((size_t)c * 8), *size = malloc((size_t)c * 8);
			for (int64_t i = 0; i < c; i++) {
				u[i] *= 8; /* where the activation bends */
				want[i] = u[i] / (1 + exp(-u[i])) * v[i];
				size[i] = fabs(want[i]);
			}
			void         *a0 = widened(u, c, policies[pi]), *a1 = widened(v, c, policies[pi]);
			const vn_args b = { .policy = policies[pi], .threads = 3, .tokens = n[k], .in = { a0, a1 } };
			double       *y = eval(&(vn_node) { .op = VN_OP_GATED, .c.act.act = VN_SILU }, &b, 3, 3);
			compare(y, want, size, c, slack(policies[pi], policies[pi].storage == VN_F64 ? 8 : 1), "gated");
			free(y);
			for (int64_t i = 0; i < c; i++)
				size[i] = fabs(want[i] = u[i] + v[i]);
			y = eval(&(vn_node) { .op = VN_OP_ADD }, &b, 3, 3);
			compare(y, want, size, c, slack(policies[pi], 1), "add");
			free(y);
			/* by a number that half and float32 hold; and with a cap */
			for (int64_t i = 0; i < c; i++)
				size[i] = fabs(want[i] = 0.375 * u[i]);
			y = eval(&(vn_node) { .op = VN_OP_SCALE, .c.scale.scale = 0.375 }, &b, 3, 3);
			compare(y, want, size, c, slack(policies[pi], 1), "scale");
			free(y);
			for (int64_t i = 0; i < c; i++)
				size[i] = fabs(want[i] = 2.5 * tanh(0.375 * u[i] / 2.5));
			y = eval(&(vn_node) { .op = VN_OP_SCALE, .c.scale = { 0.375, 2.5 } }, &b, 3, 3);
			compare(y, want, size, c, slack(policies[pi], policies[pi].storage == VN_F64 ? 8 : 1), "soft cap");
			free(u), free(v), free(want), free(size), free(a0), free(a1), free(y);
		}
}

/* transformers multiplies by the scale in the model's format. */
static void a_scale_is_rounded_to_the_storage_format(void)
{
	const double one[] = { 1.0 };

	for (int pi = 0; pi < N_POLICIES; pi++) {
		void         *in = widened(one, 1, policies[pi]);
		const vn_args a = { .policy = policies[pi], .threads = 1, .tokens = 1, .in = { in } };
		const double  root = (double)sqrtf(48.0f);
		double       *y = eval(&(vn_node) { .op = VN_OP_SCALE, .c.scale.scale = root }, &a, 1, 1);
		CU_ASSERT_EQUAL(y[0], policies[pi].storage == VN_F16 ? 6.9296875 : root);
		free(in), free(y);
	}
}

/* 65519 + 0.99 stays finite, 65520 does not; a NaN stays one. */
static void half_storage_overflows_where_a_half_does(void)
{
	const double  u[] = { 65504, 65504, -65504, (double)NAN, 1 }, v[] = { 15, 16, -16, 1, (double)INFINITY };
	void         *a0 = widened(u, 5, F16), *a1 = widened(v, 5, F16);
	const vn_args a = { .policy = F16, .threads = 1, .tokens = 5, .in = { a0, a1 } };
	double       *y = eval(&(vn_node) { .op = VN_OP_ADD }, &a, 1, 1);

	CU_ASSERT_EQUAL(y[0], 65504.0);
	CU_ASSERT_EQUAL(y[1], (double)INFINITY);
	CU_ASSERT_EQUAL(y[2], -(double)INFINITY);
	CU_ASSERT(isnan(y[3]));
	CU_ASSERT_EQUAL(y[4], (double)INFINITY);
	free(a0), free(a1), free(y);
}

/* ---- rope ------------------------------------------------------------------------------------ */

static void rope_rotates_pairs_half_a_head_apart(void)
{
	const struct {
		int          T, H, K, R;
		int64_t      past;
		vn_rope_type type;
	} row[] = {
		{ 1, 1, 2, 2, 0, VN_ROPE_DEFAULT },   { 2, 3, 8, 8, 0, VN_ROPE_DEFAULT },
		{ 3, 2, 10, 4, 5, VN_ROPE_DEFAULT },  { 17, 1, 64, 64, 1000, VN_ROPE_LINEAR },
		{ 65, 2, 6, 6, 31, VN_ROPE_YARN },    { 2, 2, 128, 64, 30000, VN_ROPE_LLAMA3 },
		{ 5, 2, 8, 8, 251, VN_ROPE_DYNAMIC }, { 6, 2, 8, 8, 251, VN_ROPE_DYNAMIC }, /* 256 tokens, and one more */
		{ 4, 1, 8, 6, 60, VN_ROPE_LONGROPE }, { 5, 1, 8, 6, 60, VN_ROPE_LONGROPE }, /* 64, and one more */
	};
	static float  by_short[] = { 1, 1.5f, 2 }, by_long[] = { 2, 4, 16 };
	const vn_list lists[] = { { 3, by_short }, { 3, by_long } };

	for (size_t k = 0; k < sizeof row / sizeof *row; k++)
		for (int pi = 0; pi < N_POLICIES; pi++) {
			const int     T = row[k].T, H = row[k].H, K = row[k].K, half = row[k].R / 2;
			const int64_t c = (int64_t)T * H * K;
			const vn_rope rope = { .type = row[k].type,
				                   .theta = 1e4,
				                   .rotary_dim = row[k].R,
				                   .factor = 4,
				                   .low_freq_factor = 1,
				                   .high_freq_factor = 4,
				                   .original_context = 64,
				                   .max_context = 256,
				                   .truncate = true,
				                   .short_factor = 1,
				                   .long_factor = 2 };
			double       *x = draws(c), *want = malloc((size_t)c * 8), *size = malloc((size_t)c * 8);
			void         *in = widened(x, c, policies[pi]);
			float         f[64], af;
			vn_rope_frequencies(&rope, lists, row[k].past + T, f, &af);
			memcpy(want, x, (size_t)c * 8);
			for (int64_t i = 0; i < c; i++)
				size[i] = fabs(x[i]);
			for (int t = 0; t < T; t++)
				for (int h = 0; h < H; h++)
					for (int i = 0; i < half; i++) {
						const int64_t u = ((int64_t)t * H + h) * K + i, v = u + half;
						const float   angle = (float)(row[k].past + t) * f[i];
						const double  co = (double)(vn_rope_cos(angle) * af), si = (double)(vn_rope_sin(angle) * af);
						want[u] = x[u] * co - x[v] * si;
						want[v] = x[v] * co + x[u] * si;
						size[u] = size[v] = fabs(x[u]) + fabs(x[v]);
					}
			const vn_node n = { .op = VN_OP_ROPE, .c.rope.rope = rope };
			const vn_args a = {
				.policy = policies[pi], .threads = 2, .past = row[k].past, .tokens = T, .in = { in }, .lists = lists
			};
			double *y = eval(&n, &a, (int64_t)H * K, K);
			compare(y, want, size, c, slack(policies[pi], 2), "rope");
			free(x), free(want), free(size), free(in), free(y);
		}
}

/* Formulas of models.md 1.5 in float64: x = 1..8, base 1e4, position 3. */
static void rope_has_the_vector_of_the_specification(void)
{
	const double x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	const double full[8] = { -1.695592537, 0.137551738, 2.788681600, 3.975982036,
		                     -4.808842475, 6.323059348, 7.086836737, 8.011963982 };
	const double part[8] = { -1.413352521, 1.879118067, -2.828857482, 4.058191135, 5, 6, 7, 8 };

	for (int R = 4; R <= 8; R += 4) {
		const vn_node n = { .op = VN_OP_ROPE, .c.rope.rope = { .theta = 1e4, .rotary_dim = R } };
		const vn_args a = { .policy = F64, .threads = 1, .past = 3, .tokens = 1, .in = { x } };
		double       *y = eval(&n, &a, 8, 8);
		for (int i = 0; i < 8; i++)
			CU_ASSERT(fabs(y[i] - (R == 8 ? full : part)[i]) < 6e-7); /* float angles against exact ones */
		free(y);
	}
}

/* ---- attention ------------------------------------------------------------------------------- */

static const struct {
	int     T, H, G, K;
	int64_t past;
	int     window, causal;
	double  cap;
} attention[] = {
	{ 1, 1, 1, 1, 0, 0, 1, 0 },     { 2, 2, 1, 3, 0, 0, 1, 0 },    { 3, 6, 2, 4, 0, 0, 1, 0 },
	{ 17, 4, 4, 5, 0, 0, 1, 0 },    { 65, 6, 3, 8, 0, 0, 1, 0 },   { 1, 4, 2, 8, 40, 0, 1, 0 },
	{ 3, 4, 1, 2, 7, 0, 1, 0 },     { 65, 2, 2, 4, 100, 0, 1, 0 }, { 130, 2, 1, 64, 3, 0, 1, 0 },
	{ 17, 4, 2, 4, 0, 3, 1, 0 },    { 65, 2, 1, 4, 70, 5, 1, 0 },  { 3, 2, 1, 4, 10, 1, 1, 0 },
	{ 65, 2, 1, 4, 0, 1000, 1, 0 }, { 130, 2, 2, 3, 0, 64, 1, 0 }, { 17, 4, 2, 4, 0, 0, 0, 0 },
	{ 65, 2, 1, 4, 9, 0, 0, 0 },    { 17, 4, 2, 4, 0, 3, 1, 0.5 }, { 65, 2, 1, 8, 9, 0, 1, 2 },
};

/* Formula of models.md 1.4, one query after the other. s, p (H,T,S); ctx (T,H,K). */
static void plain_attention(size_t k, double scale, const double *q, const double *key, const double *v, double *s,
                            double *p, double *ctx)
{
	const int T = attention[k].T, H = attention[k].H, G = attention[k].G, K = attention[k].K, W = attention[k].window;
	const int64_t S = attention[k].past + T;

	memset(ctx, 0, (size_t)((int64_t)T * H * K) * 8);
	for (int h = 0; h < H; h++)
		for (int i = 0; i < T; i++) {
			const int64_t at = attention[k].past + i;
			double       *si = s + ((int64_t)h * T + i) * S, *pi = p + ((int64_t)h * T + i) * S, sum = 0;
			const int     g = h / (H / G);
			for (int64_t j = 0; j < S; j++) {
				si[j] = 0;
				for (int d = 0; d < K; d++)
					si[j] += scale * q[((int64_t)i * H + h) * K + d] * key[(j * G + g) * K + d];
				if (attention[k].cap != 0)
					si[j] = attention[k].cap * tanh(si[j] / attention[k].cap);
				const bool allowed = (!attention[k].causal || j <= at) && (!W || j > at - W);
				sum += pi[j] = allowed ? exp(si[j]) : 0;
			}
			for (int64_t j = 0; j < S; j++) {
				pi[j] /= sum;
				for (int d = 0; d < K; d++)
					ctx[((int64_t)i * H + h) * K + d] += pi[j] * v[(j * G + g) * K + d];
			}
		}
}

static void attention_is_its_formula_with_scores_and_probabilities(void)
{
	for (size_t k = 0; k < sizeof attention / sizeof *attention; k++)
		for (int pi = 0; pi < N_POLICIES; pi++) {
			const int       T = attention[k].T, H = attention[k].H, G = attention[k].G, K = attention[k].K;
			const int64_t   S = attention[k].past + T, nq = (int64_t)T * H * K, nk = S * G * K, ns = H * T * S;
			const double    scale = 1.5 / sqrt(K);
			const vn_policy po = policies[pi];
			double         *q = draws(nq), *key = draws(nk), *v = draws(nk);
			double         *s = malloc((size_t)ns * 8), *p = malloc((size_t)ns * 8), *ctx = malloc((size_t)nq * 8),
				   *one = malloc((size_t)(ns + nq) * 8);
			void *iq = widened(q, nq, po), *ik = widened(key, nk, po), *iv = widened(v, nk, po);
			for (int64_t i = 0; i < ns + nq; i++)
				one[i] = 1.0;
			plain_attention(k, scale, q, key, v, s, p, ctx);

			const vn_node n = { .op = VN_OP_ATTENTION,
				                .c.attention = { .scale = scale,
				                                 .heads = H,
				                                 .kv_heads = G,
				                                 .head_dim = K,
				                                 .causal = attention[k].causal,
				                                 .window = attention[k].window,
				                                 .cap = attention[k].cap } };
			vn_args       a = {
					  .policy = po,
					  .threads = 2,
					  .past = attention[k].past,
					  .tokens = T,
					  .in = { iq },
					  .state = { ik, iv },
			};
			double *y = eval(&n, &a, (int64_t)H * K, K);
			compare(y, ctx, one, nq, slack(po, 8), "context");
			a.threads = 3;
			double *z = eval(&n, &a, (int64_t)H * K, K);
			CU_ASSERT(same(y, z, nq));

			/* scores and probabilities, in runs of rows that are not its blocks */
			const vn_eval *e = vn_eval_for(po);
			char          *rows = malloc((size_t)(T * S) * vn_dtype_size(e->width));
			double        *wide = malloc((size_t)(T * S) * 8);
			for (int h = 0; h < H; h++)
				for (int slot = VN_ATTN_SCORES; slot <= VN_ATTN_PROBS; slot++) {
					for (int64_t r = 0; r < T; r += 7)
						CU_ASSERT_EQUAL(e->rows(&n, &a, (vn_score_rows) { slot, h, r, T - r < 7 ? T - r : 7 },
						                        rows + (size_t)(r * S) * vn_dtype_size(e->width), NULL),
						                VN_OK);
					vn_to_f64(wide, rows, e->width, (size_t)(T * S));
					const double *want = (slot == VN_ATTN_SCORES ? s : p) + (int64_t)h * T * S;
					compare(wide, want, one, T * S, slack(po, 8) * (slot == VN_ATTN_SCORES ? 1 + 1.5 * sqrt(K) : 1),
					        "rows");
					for (int64_t i = 0; slot == VN_ATTN_PROBS && i < T * S; i++)
						CU_ASSERT(want[i] != 0 || wide[i] == 0); /* exactly */
				}
			free(q), free(key), free(v), free(s), free(p), free(ctx), free(one), free(iq), free(ik), free(iv), free(y),
				free(z), free(rows), free(wide);
		}
}

/* Scores of thousands: exp of them would overflow. */
static void large_scores_do_not_overflow(void)
{
	const double  q[2] = { 30000, 30000 };
	double        key[4] = { 1000, 1000, 999, 999 }, v[4] = { 1, 2, 3, 4 };
	const vn_node n = { .op = VN_OP_ATTENTION,
		                .c.attention = { .scale = 1, .heads = 1, .kv_heads = 1, .head_dim = 2, .causal = 1 } };
	const vn_args a = { .policy = F64, .threads = 1, .past = 1, .tokens = 1, .in = { q }, .state = { key, v } };
	double       *y = eval(&n, &a, 2, 2);

	CU_ASSERT_EQUAL(y[0], 1.0);
	CU_ASSERT_EQUAL(y[1], 2.0);
	free(y);
}

/* A NaN or infinity in value j: rows before it do not see it, rows from it on do. */
static void a_value_that_is_no_number_reaches_those_that_see_it_and_no_others(void)
{
	enum { T = 70, BAD = 33 };
	double       *q = draws(T * 2), *key = draws(T * 2), *v = draws(T * 2);
	const vn_node n = { .op = VN_OP_ATTENTION,
		                .c.attention = { .scale = 1, .heads = 1, .kv_heads = 1, .head_dim = 2, .causal = 1 } };
	const vn_node w = { .op = VN_OP_ATTENTION,
		                .c.attention = {
							.scale = 1, .heads = 1, .kv_heads = 1, .head_dim = 2, .causal = 1, .window = 4 } };
	const vn_args a = { .policy = F64, .threads = 2, .tokens = T, .in = { q }, .state = { key, v } };
	double       *good = eval(&n, &a, 2, 2), *good_w = eval(&w, &a, 2, 2);

	v[2 * BAD + 1] = (double)NAN;
	v[2 * BAD] = (double)INFINITY;
	double *y = eval(&n, &a, 2, 2), *z = eval(&w, &a, 2, 2);
	CU_ASSERT(same(y, good, 2 * BAD));
	CU_ASSERT(same(z, good_w, 2 * BAD));
	for (int t = BAD; t < T; t++) {
		CU_ASSERT(y[2 * t] == (double)INFINITY && isnan(y[2 * t + 1]));
		const bool clean = fabs(z[2 * t] - good_w[2 * t]) < 1e-14 && fabs(z[2 * t + 1] - good_w[2 * t + 1]) < 1e-14;
		const bool bad = z[2 * t] == (double)INFINITY && isnan(z[2 * t + 1]);
		CU_ASSERT(t < BAD + 4 ? bad : clean);
	}
	free(q), free(key), free(v), free(good), free(good_w), free(y), free(z);
}

/* ---- linear ---------------------------------------------------------------------------------- */

static void check_linear(int T, int M, int N, vn_dtype d, vn_policy po, bool with_bias, size_t off)
{
	double *x = draws((int64_t)T * N), *w = draws((int64_t)M * N), *b = draws(M),
		   *want = malloc((size_t)T * (size_t)M * 8), *size = malloc((size_t)T * (size_t)M * 8);
	void           *raw, *raw_b, *in = widened(x, (int64_t)T * N, po);
	const vn_tensor tw = stored(w, d, 2, M, N, off, &raw), tb = stored(b, d, 1, M, 0, off, &raw_b);
	const vn_node   n = { .op = VN_OP_LINEAR };
	vn_args         a = { .policy = po, .threads = 2, .tokens = T, .in = { in }, .w = { &tw, with_bias ? &tb : NULL } };
	char            what[128];

	vn_to_f64(w, tw.data, d, (size_t)M * (size_t)N); /* what bf16 made of them */
	vn_to_f64(b, tb.data, d, (size_t)M);
	for (int64_t t = 0; t < T; t++)
		for (int64_t m = 0; m < M; m++) {
			double sum = with_bias ? b[m] : 0, abs_sum = fabs(sum);
			for (int64_t i = 0; i < N; i++) {
				sum += x[t * N + i] * w[m * N + i];
				abs_sum += fabs(x[t * N + i] * w[m * N + i]);
			}
			want[t * M + m] = sum;
			size[t * M + m] = abs_sum;
		}
	snprintf(what, sizeof what, "linear T %d M %d N %d, %s weights, %s", T, M, N, vn_dtype_name(d),
	         vn_dtype_name(po.storage));
	double *y = eval(&n, &a, M, M);
	/* a blocked sum of N terms: a few sqrt(N) roundings */
	compare(y, want, size, (int64_t)T * M, slack(po, 4 + 2 * sqrt(N)), what);
	for (a.threads = 1; a.threads <= 3; a.threads += 2) {
		double *z = eval(&n, &a, M, M);
		CU_ASSERT(same(y, z, (int64_t)T * M));
		free(z);
	}
	free(x), free(w), free(b), free(want), free(size), free(raw), free(raw_b), free(in), free(y);
}

static void linear_is_its_formula_for_every_format_aligned_or_not(void)
{
	const int T[] = { 1, 2, 3, 17, 65 };

	for (int d = 0; d < VN_N_ENGINE_DTYPES; d++)
		for (int pi = 0; pi < N_POLICIES; pi++)
			for (size_t k = 0; k < 5; k++)
				for (int bias = 0; bias < 2; bias++)
					for (size_t off = 0; off < 2; off++)
						check_linear(T[k], 70, 33, (vn_dtype)d, policies[pi], bias, off);
}

/* Tiles are 64 to 512 rows of a weight and 512 tokens. */
static void linear_is_right_around_the_edges_of_tiles(void)
{
	const int size[] = { 1, 2, 3, 15, 16, 63, 64, 65, 127, 128, 129, 255, 257 };

	for (size_t m = 0; m < sizeof size / sizeof *size; m++)
		for (size_t n = 0; n < sizeof size / sizeof *size; n++) {
			const int T = 1 + (int)((m * 5 + n) % 4) * ((m + n) % 3 ? 1 : 6);
			check_linear(T, size[m], size[n], (m + n) % 2 ? VN_BF16 : VN_F32, (m + n) % 3 ? F32 : F64, (m ^ n) & 1, 0);
		}
	check_linear(3, 1023, 1200, VN_F16, F32, true, 0);
	check_linear(2, 1024, 65, VN_F32, F32, false, 0);
	check_linear(2, 1025, 64, VN_F32, F32, true, 1);
	check_linear(1, 1199, 1, VN_F64, F64, true, 0);
	check_linear(511, 65, 7, VN_F16, F32, true, 0);
	check_linear(513, 129, 9, VN_BF16, F64, true, 0);
	check_linear(1025, 1, 17, VN_F32, F32, false, 0);
}

/* A panel holds 8 Mi numbers: these need a second one. */
static void linear_is_right_across_panels(void)
{
	check_linear(2, 7100, 1200, VN_F16, F32, true, 0);
	check_linear(1, 65, 140000, VN_BF16, F32, false, 0);
}

/* One rounding each: 1 + 2^-11 + 2^-40 is above the middle of two halves,
 * its float is the middle. */
static void a_double_weight_is_rounded_to_half_once(void)
{
	const double    x[1] = { 1 }, w[2] = { 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 - 0x1p-40 };
	void           *raw, *raw_b, *raw_g, *in = widened(x, 1, F16);
	const vn_tensor tw = stored(w, VN_F64, 2, 2, 1, 0, &raw), tb = stored(w, VN_F64, 1, 2, 0, 1, &raw_b),
					tg = stored(w, VN_F64, 1, 1, 0, 0, &raw_g);
	const int32_t ids[2] = { 0, 1 };
	const double  want[2] = { 1 + 0x1p-10, 1 };

	for (int acc = 0; acc < 2; acc++) {
		const vn_args a = { .policy = acc ? ACC16 : F16, .threads = 1, .tokens = 1, .in = { in }, .w = { &tw, NULL } };
		double       *y = eval(&(vn_node) { .op = VN_OP_LINEAR }, &a, 2, 2);
		CU_ASSERT(same(y, want, 2));
		free(y);
	}
	const double  zero[1] = { 0 };
	void         *in0 = widened(zero, 1, F16);
	const vn_args b = { .policy = F16, .threads = 1, .tokens = 1, .in = { in0 }, .w = { &tw, &tb } };
	double       *y = eval(&(vn_node) { .op = VN_OP_LINEAR }, &b, 2, 2);
	CU_ASSERT(same(y, want, 2));
	free(y);
	const vn_args e = { .policy = F16, .threads = 1, .tokens = 2, .ids = ids, .w = { &tw } };
	y = eval(&(vn_node) { .op = VN_OP_EMBED }, &e, 1, 1);
	CU_ASSERT(same(y, want, 2));
	free(y);
	const vn_args g = { .policy = F16, .threads = 1, .tokens = 1, .in = { in }, .w = { &tg } };
	y = eval(&(vn_node) { .op = VN_OP_RMS_NORM }, &g, 1, 1);
	CU_ASSERT_EQUAL(y[0], want[0]);
	free(y);
	free(raw), free(raw_b), free(raw_g), free(in), free(in0);
}

/* Weights are rounded to what the policy stores before they are used. */
static void half_storage_rounds_float_weights_and_float_storage_does_not(void)
{
	const double    x[1] = { 1 }, w[2] = { 1 + 0x1p-12, 1 + 0x1.8p-11 };
	void           *raw, *in = widened(x, 1, F32);
	const vn_tensor t = stored(w, VN_F32, 2, 2, 1, 0, &raw);
	vn_args         a = { .policy = F32, .threads = 1, .tokens = 1, .in = { in }, .w = { &t } };
	double         *y = eval(&(vn_node) { .op = VN_OP_LINEAR }, &a, 2, 2);

	CU_ASSERT(same(y, w, 2));
	free(y);
	a.policy = F16;
	y = eval(&(vn_node) { .op = VN_OP_LINEAR }, &a, 2, 2);
	CU_ASSERT_EQUAL(y[0], 1.0);
	CU_ASSERT_EQUAL(y[1], 1 + 0x1p-10);
	free(y), free(raw), free(in);
}

static void sums_in_half_are_rounded_after_every_term(void)
{
	const struct {
		int T, M, N;
	} row[] = { { 1, 1, 1 }, { 1, 15, 8 }, { 2, 16, 9 }, { 3, 17, 100 }, { 17, 33, 64 }, { 2, 100, 1200 } };

	for (size_t k = 0; k < sizeof row / sizeof *row; k++)
		for (int d = 0; d < VN_N_ENGINE_DTYPES; d++)
			for (int with_bias = 0; with_bias < 2; with_bias++) {
				const int       T = row[k].T, M = row[k].M, N = row[k].N;
				double         *x = draws((int64_t)T * N), *w = draws((int64_t)M * N), *b = draws(M);
				void           *raw, *raw_b, *in = widened(x, (int64_t)T * N, ACC16);
				const vn_tensor tw = stored(w, (vn_dtype)d, 2, M, N, 1, &raw),
								tb = stored(b, (vn_dtype)d, 1, M, 0, 1, &raw_b);
				vn_to_f64(w, tw.data, (vn_dtype)d, (size_t)M * (size_t)N);
				vn_to_f64(b, tb.data, (vn_dtype)d, (size_t)M);
				vn_args a = {
					.policy = ACC16, .threads = 2, .tokens = T, .in = { in }, .w = { &tw, with_bias ? &tb : NULL }
				};
				double *y = eval(&(vn_node) { .op = VN_OP_LINEAR }, &a, M, M);
				int     wrong = 0;
				for (int t = 0; t < T; t++)
					for (int m = 0; m < M; m++) {
						float sum = 0;
						for (int i = 0; i < N; i++) {
							sum += (float)x[t * N + i] * vn_f16_to_f32(vn_f32_to_f16((float)w[m * N + i]));
							sum = vn_f16_to_f32(vn_f32_to_f16(sum));
						}
						if (with_bias)
							sum = vn_f16_to_f32(vn_f32_to_f16(sum + vn_f16_to_f32(vn_f32_to_f16((float)b[m]))));
						wrong += y[t * M + m] != (double)sum;
					}
				CU_ASSERT_EQUAL(wrong, 0);
				a.threads = 3;
				double *z = eval(&(vn_node) { .op = VN_OP_LINEAR }, &a, M, M);
				CU_ASSERT(same(y, z, T * M));
				free(x), free(w), free(b), free(raw), free(raw_b), free(in), free(y), free(z);
			}
}

/* 4096 ones: a sum in half ends at 2048, where adding 1 no longer changes it. */
static void a_sum_in_half_gets_stuck_where_it_must(void)
{
	double *one = malloc(4096 * 8);
	for (int i = 0; i < 4096; i++)
		one[i] = 1;
	void           *raw, *in = widened(one, 4096, F16);
	const vn_tensor t = stored(one, VN_F16, 2, 1, 4096, 0, &raw);
	vn_args         a = { .policy = ACC16, .threads = 1, .tokens = 1, .in = { in }, .w = { &t } };
	double         *y = eval(&(vn_node) { .op = VN_OP_LINEAR }, &a, 1, 1);

	CU_ASSERT_EQUAL(y[0], 2048.0);
	free(y);
	a.policy = F16;
	y = eval(&(vn_node) { .op = VN_OP_LINEAR }, &a, 1, 1);
	CU_ASSERT_EQUAL(y[0], 4096.0);
	free(y), free(raw), free(in), free(one);
}

/* ulp of a positive normal number */
static double ulp(double x)
{
	return vn_dtype_ulp(VN_F64, x);
}

static void the_exponential_is_within_two_ulp_and_keeps_its_ends(void)
{
	double worst = 0.0;
	for (double x = -707.99; x < 709.0; x += 0.00137) {
		const double e = exp(x), off = fabs(vn_exp(x) - e) / ulp(e);
		worst = off > worst ? off : worst;
	}
	CU_ASSERT(worst <= 2.0);
	CU_ASSERT_EQUAL(vn_exp(0.0), 1.0);
	CU_ASSERT_EQUAL(vn_exp(-0.0), 1.0);
	CU_ASSERT_EQUAL(vn_exp(-1e6), 0.0);
	CU_ASSERT_EQUAL(vn_exp(-(double)INFINITY), 0.0);
	CU_ASSERT(isinf(vn_exp(1e6)) && isinf(vn_exp((double)INFINITY)));
	CU_ASSERT(isnan(vn_exp((double)NAN)));
}

/* Values from tables of functions, and by hand. */
static const struct {
	vn_act act;
	double x, y;
} known[] = {
	{ VN_SIGMOID, 1, 0.7310585786300049 },
	{ VN_SIGMOID, -1, 0.2689414213699951 },
	{ VN_TANH, 1, 0.7615941559557649 },
	{ VN_SOFTPLUS, 1, 1.3132616875182228 },
	{ VN_SOFTPLUS, 0, 0.6931471805599453 },
	{ VN_SOFTPLUS, 1000, 1000 },
	{ VN_MISH, 1, 0.8650983882673103 },
	{ VN_MISH, 0, 0 },
	{ VN_ELU, -1, -0.6321205588285577 },
	{ VN_ELU, 3, 3 },
	{ VN_SELU, 1, 1.0507009873554805 },
	{ VN_SELU, -1, -1.1113307378125625 },
	{ VN_LEAKY_RELU, -3, -0.03 },
	{ VN_LEAKY_RELU, 3, 3 },
	{ VN_RELU6, 8, 6 },
	{ VN_RELU6, -1, 0 },
	{ VN_RELU6, 5, 5 },
	{ VN_SQUARED_RELU, 3, 9 },
	{ VN_SQUARED_RELU, -3, 0 },
	{ VN_HARD_SIGMOID, 1, 2.0 / 3 },
	{ VN_HARD_SIGMOID, -4, 0 },
	{ VN_HARD_SIGMOID, 4, 1 },
	{ VN_HARD_SWISH, -1, -1.0 / 3 },
	{ VN_HARD_SWISH, 4, 4 },
	{ VN_SOFTSIGN, -1, -0.5 },
	{ VN_SOFTSIGN, 3, 0.75 },
	{ VN_EXP, 1, 2.718281828459045 },
};

static void activations_that_no_model_has_are_their_functions(void)
{
	double y;

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const vn_node n = { .op = VN_OP_ACT, .c.act.act = known[i].act };
		const vn_args a = { .policy = F64, .threads = 1, .tokens = 1, .in = { &known[i].x } };
		CU_ASSERT_EQUAL(vn_evaluator_f64.node(&n, &a, 1, 1, &y, NULL), VN_OK);
		CU_ASSERT_DOUBLE_EQUAL(y, known[i].y, 2e-14 + 1e-15 * fabs(known[i].x));
	}
	for (int act = VN_TANH; act <= VN_EXP; act++) {
		bool there = false;
		for (size_t k = 0; k < sizeof known / sizeof *known; k++)
			there = there || (int)known[k].act == act;
		CU_ASSERT_TRUE(there); /* every one has a value here */
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(activations_that_no_model_has_are_their_functions),
		TEST(embedding_rows_are_the_rows_of_the_matrix),
		TEST(rms_norm_is_its_formula),
		TEST(a_row_of_zeros_norms_to_zeros_and_not_to_nan),
		TEST(silu_has_the_values_of_the_specification_at_both_ends_too),
		TEST(the_exponential_is_within_two_ulp_and_keeps_its_ends),
		TEST(gated_and_added_are_their_formulas),
		TEST(a_scale_is_rounded_to_the_storage_format),
		TEST(half_storage_overflows_where_a_half_does),
		TEST(rope_rotates_pairs_half_a_head_apart),
		TEST(rope_has_the_vector_of_the_specification),
		TEST(attention_is_its_formula_with_scores_and_probabilities),
		TEST(large_scores_do_not_overflow),
		TEST(a_value_that_is_no_number_reaches_those_that_see_it_and_no_others),
		TEST(linear_is_its_formula_for_every_format_aligned_or_not),
		TEST(linear_is_right_around_the_edges_of_tiles),
		TEST(linear_is_right_across_panels),
		TEST(a_double_weight_is_rounded_to_half_once),
		TEST(half_storage_rounds_float_weights_and_float_storage_does_not),
		TEST(sums_in_half_are_rounded_after_every_term),
		TEST(a_sum_in_half_gets_stuck_where_it_must),
		CU_TEST_INFO_NULL,
	};
	vn_error err = { "" };

	if (vn_blas_prepare(2, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return run_suite("ops", tests);
}
