/* test_latent.c: latent attention (libref/ops/join.c, attention.c): with the keys and values of all
 * heads made from latent vectors, it gives what it gives with the matrices absorbed. Also the
 * routers that go with it (top_k.c, route.c). */
#include "libref/ops/blas.h"
#include "tests/support/suite.h"
#include "tests/support/test_ops_help.h"

#include <stdio.h>

enum { T = 70, H = 3, N = 5, R = 4, C = 9, U = 7 };

/* What attention makes of q (T,H,K), k (T,G,K) and v (T,G,W). */
static double *attend(vn_policy p, int G, int K, int W, const double *q, const double *k, const double *v)
{
	void         *qx = widened(q, T * H * K, p), *kx = widened(k, T * G * K, p), *vx = widened(v, T * G * W, p);
	const vn_node n = { .op = VN_OP_ATTENTION,
		                .c.attention = {
							.scale = 0.4, .heads = H, .kv_heads = G, .head_dim = K, .causal = 1, .value_dim = W } };
	const vn_args a = { .policy = p, .threads = 2, .tokens = T, .in = { qx }, .state = { kx, vx } };
	double       *y = eval(&n, &a, H * W, W);

	free(qx), free(kx), free(vx);
	return y;
}

/* y (T,H,M) of x (T,H,N): by the rows (M,N) of each head, or (across) by its rows (N,M). */
static double *by_heads(const double *x, const double *w, int rows, int from, int M_, int N_, bool across)
{
	double *y = calloc((size_t)(T * H * M_) + 1, sizeof *y);

	for (int t = 0; t < T * H; t++) {
		const double *own = w + (size_t)(t % H * rows + from) * C;
		for (int m = 0; m < M_; m++)
			for (int i = 0; i < N_; i++)
				y[t * M_ + m] += x[t * N_ + i] * (across ? own[i * C + m] : own[m * C + i]);
	}
	return y;
}

static double *joined(vn_policy p, int G, int A, int B, int heads, const double *a, const double *b)
{
	void         *ax = widened(a, (int64_t)T * heads * A, p), *bx = widened(b, (int64_t)T * G * B, p);
	const vn_node n = { .op = VN_OP_JOIN, .c.join = { .heads = heads, .shared = G, .width = A } };
	const vn_args args = { .policy = p, .threads = 1, .tokens = T, .in = { ax, bx } };
	double       *y = eval(&n, &args, heads * (A + B), A + B);

	free(ax), free(bx);
	return y;
}

/* The tolerances of test_invariants.c, for float32, and of float64. */
static void absorbed_and_materialised_attention_are_equal(void)
{
	double *c = draws(T * C), *pe = draws(T * R), *w = draws(H * (N + U) * C), *qn = draws(T * H * N),
		   *qr = draws(T * H * R), *each = malloc((size_t)(T * H * C) * sizeof *each);

	for (int t = 0; t < T; t++)
		for (int h = 0; h < H; h++)
			memcpy(each + (t * H + h) * C, c + t * C, C * sizeof *c);
	double *kn = by_heads(each, w, N + U, 0, N, C, false), *v = by_heads(each, w, N + U, N, U, C, false),
		   *qc = by_heads(qn, w, N + U, 0, C, N, true); /* q W */
	for (int pi = 0; pi < 2; pi++) {
		double *k = joined(F64, 1, N, R, H, kn, pe), *q = joined(F64, H, N, R, H, qn, qr);
		double *kc = joined(F64, 1, C, R, 1, c, pe), *qa = joined(F64, H, C, R, H, qc, qr), size = 0, worst = 0;
		double *made = attend(policies[pi], H, N + R, U, q, k, v),
			   *latent = attend(policies[pi], 1, C + R, C, qa, kc, c);
		double *absorbed = by_heads(latent, w, N + U, N, U, C, false);
		for (int i = 0; i < T * H * U; i++) {
			size = fmax(size, fabs(made[i]));
			worst = fmax(worst, fabs(made[i] - absorbed[i]));
		}
		CU_ASSERT(size > 0.5);
		CU_ASSERT(worst <= (pi == 1 ? 1e-13 : 3e-6));
		free(k), free(q), free(kc), free(qa), free(made), free(latent), free(absorbed);
	}
	free(c), free(pe), free(w), free(qn), free(qr), free(each), free(kn), free(v), free(qc);
}

static void keys_of_a_group_get_the_columns_of_its_head(void)
{
	const double  a[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, b[] = { 10, 20, 30, 40 };
	const double  want[] = { 1, 2, 10, 3, 4, 10, 5, 6, 20, 7, 8, 20 };
	void         *ax = widened(a, 8, F32), *bx = widened(b, 2, F32);
	const vn_node n = { .op = VN_OP_JOIN, .c.join = { .heads = 4, .shared = 2, .width = 2 } };
	const vn_args args = { .policy = F32, .threads = 1, .tokens = 1, .in = { ax, bx } };
	double       *y = eval(&n, &args, 12, 3);

	CU_ASSERT_EQUAL(memcmp(y, want, sizeof want), 0);
	free(ax), free(bx), free(y);
}

/* Of three groups of two, with sigmoids of 0.5, 0.9, 0.75, 0.75, 0.8, 0.1. */
static void groups_limit_the_choice_and_a_bias_moves_it_but_not_the_weights(void)
{
	const double x[] = { 0, log(9), log(3), log(3), log(4), log(1 / 9.0) }, bias[] = { 0, 0, 0, 0, 0, 0.62 };
	const struct {
		int    groups, used, best;
		bool   biased;
		double ids[2], weights[2];
	} row[] = {
		{ 0, 0, 0, false, { 1, 4 }, { 0.9, 0.8 } },   { 3, 1, 1, false, { 1, 0 }, { 0.9, 0.5 } },
		{ 3, 1, 2, false, { 2, 3 }, { 0.75, 0.75 } }, { 3, 2, 2, false, { 1, 2 }, { 0.9, 0.75 } },
		{ 0, 0, 0, true, { 1, 4 }, { 0.9, 0.8 } },    { 3, 2, 2, true, { 4, 2 }, { 0.8, 0.75 } },
	};
	void           *raw;
	const vn_tensor t = stored(bias, VN_F32, 1, 6, 0, 0, &raw);

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		void         *in = widened(x, 6, F64), *ids;
		const vn_node choose = { .op = VN_OP_TOP_K,
			                     .c.top_k = { .columns = 6,
			                                  .k = 2,
			                                  .sigmoid = 1,
			                                  .groups = row[i].groups,
			                                  .groups_used = row[i].used,
			                                  .best = row[i].best } };
		const vn_node weigh = { .op = VN_OP_ROUTE, .c.route = { .columns = 6, .sigmoid = 1, .scale = 2.0 } };
		vn_args       a = { .policy = F64, .threads = 1, .tokens = 1, .in = { in }, .wide = true };
		a.w[0] = row[i].biased ? &t : NULL;
		double *chosen = eval(&choose, &a, 2, 2);
		ids = widened(chosen, 2, F64);
		a.in[1] = ids;
		a.w[0] = NULL;
		double *weights = eval(&weigh, &a, 2, 2);
		for (int s = 0; s < 2; s++) {
			CU_ASSERT_EQUAL(chosen[s], row[i].ids[s]);
			CU_ASSERT(fabs(weights[s] - 2 * row[i].weights[s]) < 1e-15);
		}
		free(in), free(ids), free(chosen), free(weights);
	}
	free(raw);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(absorbed_and_materialised_attention_are_equal),
		TEST(keys_of_a_group_get_the_columns_of_its_head),
		TEST(groups_limit_the_choice_and_a_bias_moves_it_but_not_the_weights),
		CU_TEST_INFO_NULL,
	};
	vn_error e;

	if (vn_blas_prepare(2, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return run_suite("latent", tests);
}
