/* test_gemm.c: a plain C loop with the parameters of a product computes the operation's result. */
#include "libref/plan/gemm.h"
#include "tests/support/plan_help.h"

enum { T = 3, S = 5, MOST = 512 };

static vn_gemm only(const vn_plan *p, const char *name)
{
	vn_gemm   g[VN_MAX_GEMM] = { { 0 } };
	const int v = vn_plan_find(p, name);

	CU_ASSERT_FATAL(v >= 0);
	CU_ASSERT_EQUAL(vn_gemms_of(p, v, g), 1);
	return g[0];
}

static void says(const vn_gemm *g, const char *want)
{
	char text[VN_GEMM_TEXT];

	CU_ASSERT_STRING_EQUAL(vn_gemm_text(g, text), want);
	if (strcmp(text, want) != 0)
		fprintf(stderr, "wanted '%s'\n  have '%s'\n", want, text);
}

/* What BLAS computes. */
static void call(const vn_gemm *g, const double *a, const double *b, double *c)
{
	for (int64_t m = 0; m < g->m; m++)
		for (int64_t n = 0; n < g->n; n++) {
			double sum = 0;
			for (int64_t k = 0; k < g->k; k++)
				sum += a[m * g->lda + k] * b[g->transposed ? n * g->ldb + k : k * g->ldb + n];
			c[m * g->ldc + n] = g->alpha * sum;
		}
}

/* Small integers, so that sums are exact in any order. */
static void fill(double *x, int n, int seed)
{
	for (int i = 0; i < n; i++)
		x[i] = (i * 7 + seed) % 11 - 5;
}

static void a_linear_layer_is_the_input_times_the_transposed_weight(void)
{
	vn_plan *p = toy();
	double   x[T * D], w[F * D], y[T * F] = { 0 };

	const vn_gemm g = only(p, "layer0.gate_proj"), at = vn_gemm_at(&g, T, T);
	says(&g, "M=tokens N=24 K=16 A row-major lda=16, B transposed ldb=16, ldc=24");
	fill(x, T * D, 1);
	fill(w, F * D, 2);
	call(&at, x, w, y);
	for (int t = 0; t < T; t++)
		for (int f = 0; f < F; f++) {
			double sum = 0;
			for (int d = 0; d < D; d++)
				sum += x[t * D + d] * w[f * D + d];
			CU_ASSERT_EQUAL(y[t * F + f], sum);
		}
	vn_plan_destroy(p);
}

static void grouped_queries_share_the_keys_of_their_head(void)
{
	vn_plan *p = toy();
	vn_gemm  g[VN_MAX_GEMM];
	double   q[T * H * K], k[S * G * K], scores[H * T * S], context[T * H * K];

	CU_ASSERT_EQUAL_FATAL(vn_gemms_of(p, vn_plan_find(p, "layer1.attn_context"), g), 2);
	says(&g[0],
	     "M=tokens N=keys K=4 A row-major lda=16, B transposed ldb=8, ldc=keys, alpha=0.5; scores of each of 4 heads, "
	     "2 share one B");
	says(&g[1],
	     "M=tokens N=4 K=keys A row-major lda=keys, B row-major ldb=8, ldc=16; context of each of 4 heads, 2 share one "
	     "B");
	fill(q, T * H * K, 3);
	fill(k, S * G * K, 4);
	const vn_gemm a = vn_gemm_at(&g[0], T, S), b = vn_gemm_at(&g[1], T, S);
	for (int h = 0; h < a.batch; h++) {
		call(&a, q + h * K, k + h / a.share * K, scores + h * T * S);
		call(&b, scores + h * T * S, k + h / b.share * K, context + h * K);
	}
	for (int h = 0; h < H; h++)
		for (int t = 0; t < T; t++)
			for (int i = 0; i < K; i++) {
				double sum = 0;
				for (int s = 0; s < S; s++) {
					double score = 0;
					for (int j = 0; j < K; j++)
						score += q[(t * H + h) * K + j] * k[(s * G + h / (H / G)) * K + j];
					CU_ASSERT_EQUAL(scores[(h * T + t) * S + s], 0.5 * score);
					sum += 0.5 * score * k[(s * G + h / (H / G)) * K + i];
				}
				CU_ASSERT_EQUAL(context[(t * H + h) * K + i], sum);
			}
	vn_plan_destroy(p);
}

/* As GPT-2 has it: queries, keys and values from one product, whose weight is stored (N,M). */
static void a_fused_product_has_the_width_of_all_three_and_its_weight_as_stored(void)
{
	vn_builder *b = vn_plan_begin(1, 10, 16);
	vn_plan    *p = NULL;
	const int   x = vn_plan_embed(b, vn_plan_weight(b, "e", 2, (int64_t[]) { 10, 8 }), VN_POINT_EMBED);

	vn_plan_layer(b, 0);
	vn_plan_conv1d(b, x, vn_plan_weight(b, "w", 2, (int64_t[]) { 8, 24 }), -1, 0, VN_POINT_C_ATTN);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, NULL), VN_OK);
	const vn_gemm g = only(p, "layer0.c_attn");
	says(&g, "M=tokens N=24 K=8 A row-major lda=8, B row-major ldb=24, ldc=24");
	vn_plan_destroy(p);
}

static void scores_are_one_product_and_what_is_no_product_has_none(void)
{
	static const char *const none[] = { "embed",          "layer0.attn_norm", "layer0.q_rope", "layer0.attn_probs",
		                                "layer0.k_cache", "layer0.mlp_act",   "layer0.output" };
	vn_plan                 *p = toy();
	vn_gemm                  g[VN_MAX_GEMM];

	CU_ASSERT_STRING_EQUAL(only(p, "layer0.attn_scores").of, "scores");
	CU_ASSERT_EQUAL(only(p, "logits").n, V);
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		const int v = vn_plan_find(p, none[i]);
		CU_ASSERT_FATAL(v >= 0);
		CU_ASSERT_EQUAL(vn_gemms_of(p, v, g), 0);
	}
	vn_plan_destroy(p);
}

/* What progress says of the time left. */
static void the_shares_of_time_rise_to_one_and_products_weigh_by_their_size(void)
{
	vn_plan *p = toy();
	double  *share = malloc(((size_t)p->n_nodes + 1) * sizeof *share), all = 0;
	enum { TOKENS = 64, OTHER = 4096 };

	vn_gemm_shares(p, TOKENS, TOKENS, share);
	CU_ASSERT_EQUAL(share[0], 0);
	CU_ASSERT_EQUAL(share[p->n_nodes], 1);
	for (int i = 0; i < p->n_nodes; i++) {
		vn_gemm   g[VN_MAX_GEMM];
		const int n = vn_gemms_of(p, p->node[i].out[0], g);
		CU_ASSERT(share[i + 1] > share[i]);
		all += OTHER * TOKENS;
		for (int k = 0; k < n; k++) {
			const vn_gemm at = vn_gemm_at(&g[k], TOKENS, TOKENS);
			all += (double)(at.m * at.n * at.k * at.batch);
		}
	}
	const int     logits = p->value[vn_plan_find(p, "logits")].node;
	const vn_gemm g = vn_gemm_at(&(vn_gemm) { .m = VN_T, .n = V, .k = only(p, "logits").k, .batch = 1 }, TOKENS,
	                             TOKENS);
	CU_ASSERT_DOUBLE_EQUAL((share[logits + 1] - share[logits]) * all, (double)(g.m * g.n * g.k) + OTHER * TOKENS, 1);
	free(share);
	vn_plan_destroy(p);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_linear_layer_is_the_input_times_the_transposed_weight),
		TEST(grouped_queries_share_the_keys_of_their_head),
		TEST(a_fused_product_has_the_width_of_all_three_and_its_weight_as_stored),
		TEST(the_shares_of_time_rise_to_one_and_products_weigh_by_their_size),
		TEST(scores_are_one_product_and_what_is_no_product_has_none),
		CU_TEST_INFO_NULL,
	};
	return run_suite("gemm", tests);
}
