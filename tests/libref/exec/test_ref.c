/* test_ref.c: the numbers of whole runs: the qwen2 toy of toy_model.h, in every precision. */
#include "tests/support/ref_help.h"

/* ---- golden numbers ---------------------------------------------------------------------- */

static const struct {
	const char *name;
	double      first, last, norm;
} golden[] = {
	{ "embed", -0.4059296, -0.01412964, 3.374886 },
	{ "layer0.attn_norm", -1.166639, -0.04480887, 10.51699 },
	{ "layer0.q_proj", 0.9513515, -0.5238797, 12.18115 },
	{ "layer0.k_proj", -1.83605, 0.2462582, 6.429776 },
	{ "layer0.v_proj", -0.05835372, -0.4095407, 8.91698 },
	{ "layer0.q_rope", 0.9513515, -0.4689223, 12.18115 },
	{ "layer0.k_rope", -1.83605, 0.1248694, 6.429776 },
	{ "layer0.attn_probs", 1, 0.02698523, 3.645269 },
	{ "layer0.attn_context", -0.05835372, 0.466251, 8.821971 },
	{ "layer0.attn_out", -1.031935, -0.9203345, 10.38346 },
	{ "layer0.attn_residual", -1.437865, -0.9344641, 11.76182 },
	{ "layer0.mlp_norm", -0.70135, -1.240244, 11.4217 },
	{ "layer0.gate_proj", 0.1709279, 2.545743, 17.83441 },
	{ "layer0.up_proj", -0.4172348, 0.3369126, 14.70726 },
	{ "layer0.mlp_act", -0.03869867, 0.7953277, 11.79097 },
	{ "layer0.down_proj", -0.09956815, 1.121348, 12.85833 },
	{ "layer0.output", -1.537433, 0.1868837, 18.46554 },
	{ "layer1.output", 0.9168901, -0.9816515, 22.74084 },
	{ "final_norm", 0.2771917, -0.4830368, 12.05131 },
	{ "logits", 1.890736, -0.02487613, 20.86642 },
};

static void check_golden(vn_policy policy)
{
	keep   k;
	size_t n;

	run(&k, policy, 2, "*", ids, T);
	for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
		double *x = doubles(&k, golden[i].name, &n), squares = 0;
		CU_ASSERT_PTR_NOT_NULL_FATAL(x);
		for (size_t j = 0; j < n; j++)
			squares += x[j] * x[j];
		const bool ok = golden_near(x[0], golden[i].first) && golden_near(x[n - 1], golden[i].last) &&
		                golden_near(sqrt(squares), golden[i].norm);
		CU_ASSERT(ok);
		if (!ok)
			fprintf(stderr, "%s: %.9g %.9g %.9g\n", golden[i].name, x[0], x[n - 1], sqrt(squares));
		free(x);
	}

	const double last_row[8] = { 1.114159, 0.995844, -0.670074, -3.057582, 2.004670, 0.996979, 1.889538, -2.578010 };
	const int    top[T] = { 3, 13, 12, 12, 2, 2, 2, 12 };
	double      *x = doubles(&k, "logits", &n);
	CU_ASSERT_EQUAL_FATAL(n, T * TOY_V);
	for (int i = 0; i < 8; i++)
		CU_ASSERT(golden_near(x[(T - 1) * TOY_V + i], last_row[i]));
	for (int t = 0; t < T; t++) {
		int best = 0;
		for (int i = 1; i < TOY_V; i++)
			best = x[t * TOY_V + i] > x[t * TOY_V + best] ? i : best;
		CU_ASSERT_EQUAL(best, top[t]);
	}
	free(x);
	keep_clear(&k);
}

/* The check of the fill rule: without it the rest proves nothing. */
static void the_toy_model_is_filled_by_its_rule(void)
{
	const char *name = "model.embed_tokens.weight";
	const float want[] = { 0.356109619f, -0.797393799f, 0.206268311f, -0.071685791f };
	uint32_t    x = toy_hash(name);

	CU_ASSERT_EQUAL(x, 0x403ADE76u);
	for (int i = 0; i < 4; i++)
		CU_ASSERT(fabsf(2 * toy_value(name, &x) - want[i]) < 1e-9f);
}

static void float32_has_the_golden_numbers(void)
{
	check_golden(F32);
}
static void float64_has_the_golden_numbers(void)
{
	check_golden(F64);
}

static void each_coarser_format_is_further_away_and_by_its_own_amount(void)
{
	keep a, b, c, d;

	run(&a, F64, 1, "*", ids, T);
	run(&b, F32, 1, "*", ids, T);
	run(&c, F16, 1, "*", ids, T);
	run(&d, ACC16, 1, "*", ids, T);
	const double f32 = nmse(&b, &a, "logits"), f16 = nmse(&c, &a, "logits"), acc16 = nmse(&d, &a, "logits");
	CU_ASSERT(f32 > 1e-16 && f32 < 1e-12);
	CU_ASSERT(f16 > 1e-8 &&
	          f16 < 1e-5); /* one rounding to half is 2e-8; the weights too are rounded, and layers amplify */
	CU_ASSERT(acc16 > 1.2 * f16 && acc16 < 1e-4);
	if (!(f16 > 1e-8 && f16 < 1e-5 && acc16 > 1.2 * f16))
		fprintf(stderr, "nmse f32 %g, f16 %g, f16-acc16 %g\n", f32, f16, acc16);
	keep_clear(&a), keep_clear(&b), keep_clear(&c), keep_clear(&d);
}

static void every_value_is_handed_over_in_the_format_it_is_stored_in(void)
{
	const struct {
		vn_policy policy;
		vn_dtype  dtype;
	} row[] = { { F32, VN_F32 }, { F64, VN_F64 }, { F16, VN_F16 }, { ACC16, VN_F16 } };
	keep k;

	for (int i = 0; i < 4; i++) {
		run(&k, row[i].policy, 1, "*", ids, T);
		for (int j = 0; j < k.n; j++)
			CU_ASSERT_EQUAL(k.value[k.order[j]].dtype, row[i].dtype);
		keep_clear(&k);
	}
}

/* ---- what a value is made of ---------------------------------------------------------------- */

static void scores_and_probabilities_are_those_of_the_tapped_queries_and_keys(void)
{
	int32_t long_id[LONG];
	size_t  n;
	keep    k;

	long_ids(long_id, 64);
	run(&k, F64, 2, "*", long_id, 64);
	for (int l = 0; l < TOY_L; l++) {
		char name[4][64];
		snprintf(name[0], 64, "layer%d.q_rope", l), snprintf(name[1], 64, "layer%d.k_rope", l);
		snprintf(name[2], 64, "layer%d.attn_scores", l), snprintf(name[3], 64, "layer%d.attn_probs", l);
		double *q = doubles(&k, name[0], &n), *key = doubles(&k, name[1], &n), *s = doubles(&k, name[2], &n),
			   *p = doubles(&k, name[3], &n);
		double worst_s = 0, worst_p = 0, beyond = 0;
		CU_ASSERT_EQUAL_FATAL(n, TOY_H * 64 * 64);
		for (int h = 0; h < TOY_H; h++)
			for (int i = 0; i < 64; i++) {
				double row[64], sum = 0;
				for (int j = 0; j < 64; j++) {
					double dot = 0;
					for (int d = 0; d < TOY_K; d++)
						dot += q[(i * TOY_H + h) * TOY_K + d] * key[(j * TOY_G + h / 2) * TOY_K + d];
					row[j] = dot / 2; /* 4^-1/2 */
					sum += j <= i ? exp(row[j]) : 0;
				}
				for (int j = 0; j < 64; j++) {
					const size_t at = (size_t)((h * 64 + i) * 64 + j);
					worst_s = fmax(worst_s, fabs(s[at] - row[j]));
					worst_p = fmax(worst_p, fabs(p[at] - (j <= i ? exp(row[j]) / sum : 0)));
					beyond += j > i && p[at] != 0.0;
				}
			}
		CU_ASSERT(worst_s < 1e-13);
		CU_ASSERT(worst_p < 1e-13);
		CU_ASSERT_EQUAL(beyond, 0.0);
		free(q), free(key), free(s), free(p);
	}
	keep_clear(&k);
}

static void the_first_row_of_attention_is_its_own_value(void)
{
	size_t n;
	keep   k;

	run(&k, F32, 1, "layer0.{v_proj,attn_context}", ids, T);
	double *v = doubles(&k, "layer0.v_proj", &n), *c = doubles(&k, "layer0.attn_context", &n);
	for (int h = 0; h < TOY_H; h++)
		for (int d = 0; d < TOY_K; d++)
			CU_ASSERT_EQUAL(c[h * TOY_K + d], v[h / 2 * TOY_K + d]);
	free(v);
	free(c);
	keep_clear(&k);
}

static void an_engine_says_what_it_is(void)
{
	vn_ref  *r = engine(vn_model_plan(model), ACC16, 3);
	vn_facts f = { 0 };

	vn_ref_ops.facts(r, &f);
	CU_ASSERT_STRING_EQUAL(vn_facts_get(&f, "engine"), "ref");
	CU_ASSERT_STRING_EQUAL(vn_facts_get(&f, "precision"), "f16-acc16");
	CU_ASSERT_STRING_EQUAL(vn_facts_get(&f, "threads"), "3");
	CU_ASSERT_PTR_NOT_NULL(vn_facts_get(&f, "blas_kernel"));
	vn_ref_ops.destroy(r);
	vn_ref_ops.destroy(NULL);
}

static void a_window_in_a_clone_hides_the_keys_before_it(void)
{
	vn_plan *c;
	keep     k;
	size_t   n;

	CU_ASSERT_EQUAL_FATAL(vn_plan_clone(vn_model_plan(model), &c, NULL), VN_OK);
	for (int i = 0; i < c->n_nodes; i++)
		if (c->node[i].op == VN_OP_ATTENTION)
			CU_ASSERT_EQUAL(vn_const_set(&c->node[i], "window", 3, NULL), VN_OK);
	vn_ref *r = engine(c, F32, 1);
	keep_start(&k, c, "layer0.attn_probs");
	forward(r, ids, T, &k);
	double *p = doubles(&k, "layer0.attn_probs", &n);
	for (int h = 0; h < TOY_H; h++)
		for (int i = 0; i < T; i++)
			for (int j = 0; j < T; j++)
				CU_ASSERT_EQUAL(p[(h * T + i) * T + j] > 0, j <= i && j > i - 3);
	free(p);
	vn_ref_ops.destroy(r);
	keep_clear(&k);
	vn_plan_destroy(c);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(the_toy_model_is_filled_by_its_rule),
		TEST(float32_has_the_golden_numbers),
		TEST(float64_has_the_golden_numbers),
		TEST(each_coarser_format_is_further_away_and_by_its_own_amount),
		TEST(every_value_is_handed_over_in_the_format_it_is_stored_in),
		TEST(scores_and_probabilities_are_those_of_the_tapped_queries_and_keys),
		TEST(the_first_row_of_attention_is_its_own_value),
		TEST(an_engine_says_what_it_is),
		TEST(a_window_in_a_clone_hides_the_keys_before_it),
		CU_TEST_INFO_NULL,
	};
	return run_ref_suite("ref", tests);
}
