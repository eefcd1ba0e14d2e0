/* test_recompute_run.c: tests compare/replay/recompute_run.c. */
#include "tests/support/attention_help.h"

enum { CALL = 12, S = CALL + 1 };

static float plain_q[TOKENS * H * K], plain_k[TOKENS * G * K], probs[H * CALL * CALL];

static void fill_context(double times)
{
	make_up_inputs();
	attend_all(&(mistake) { .times = times }, 0, S);
}

/* How far the recomputed numbers are from the context of tokens [from, to). */
static double off_context(const vn_tensor *out, int from, int to)
{
	double most = 0, x;

	CU_ASSERT_EQUAL_FATAL(vn_shape_count(&out->shape), (to - from) * H * K);
	for (int i = 0; i < (to - from) * H * K; i++) {
		vn_to_f64(&x, (const char *)out->data + (size_t)i * vn_dtype_size(out->dtype), out->dtype, 1);
		most = fmax(most, fabs(x - (double)context[from * H * K + i]));
	}
	return most;
}

static double run(explained *e, const vn_plan *plan, int from, int to)
{
	vn_tensor out;

	CU_ASSERT_EQUAL_FATAL(vn_recompute_run(e->t.recompute, plan, e->t.site->weights, VN_FINE_WIDTH, &out, &e->err),
	                      VN_OK);
	CU_ASSERT_EQUAL(out.dtype, VN_F64);
	const double off = off_context(&out, from, to);
	vn_tensor_free(&out);
	return off;
}

static void each_step_computes_its_own_rows(void)
{
	explained e;

	fill_context(1);
	stand_at_context(&e, CALL, 1, 0);
	CU_ASSERT_TRUE(run(&e, e.t.site->plan, 0, CALL) < 1e-6);
	end_explained(&e);
	stand_at_context(&e, CALL, 1, 1);
	CU_ASSERT_EQUAL(e.t.site->first, CALL);
	CU_ASSERT_TRUE(run(&e, e.t.site->plan, CALL, S) < 1e-6);
	end_explained(&e);
}

static void a_changed_plan_computes_what_it_says(void)
{
	vn_plan  *p = NULL;
	double    off = 0;
	explained e;

	fill_context(2);
	stand_at_context(&e, CALL, 1, 0);
	CU_ASSERT_TRUE(run(&e, e.t.site->plan, 0, CALL) > 1e-2);
	CU_ASSERT_EQUAL_FATAL(vn_plan_clone(e.t.site->plan, &p, &e.err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_const_set(&p->node[node_named(&e, "layer1.attn_context")], "scale", 2 / sqrt(K), &e.err),
	                      VN_OK);
	CU_ASSERT_TRUE(run(&e, p, 0, CALL) < 1e-6);
	CU_ASSERT_EQUAL(vn_recompute_estimate_tokens(e.t.recompute, p, e.t.site->weights, &off, &e.err), VN_OK);
	CU_ASSERT_TRUE(off < 1e-10);
	vn_plan_destroy(p);
	end_explained(&e);
}

/* Values that were not recorded are computed from those that were. */
static void unrecorded_rotations_are_computed(void)
{
	const given of[] = { { "layer1.q_proj", plain_q },
		                 { "layer1.k_proj", plain_k },
		                 { "layer1.v_proj", v },
		                 { "layer1.attn_context", context } };
	explained   e;

	make_up_inputs();
	rotate_inputs(S, 500000, 500000, plain_q, plain_k);
	attend_all(&(mistake) { 0 }, 0, S);
	compare_given(&e, CALL, 1, of, 4);
	for (int step = 0; step < 2; step++) {
		stand_at(&e, "layer1.attn_context", step);
		CU_ASSERT_TRUE(run(&e, e.t.site->plan, step ? CALL : 0, step ? S : CALL) < 1e-5);
		CU_ASSERT_EQUAL(e.t.site->n_span, 3); /* two rotations and itself */
		if (!step)
			leave_stand(&e);
	}
	end_explained(&e);
}

/* A plan that changes a recorded value has no effect, unless the recorded value is ignored. */
static void a_disregarded_value_is_computed_by_the_plan(void)
{
	const given of[] = { { "layer1.q_proj", plain_q },
		                 { "layer1.q_rope", q },
		                 { "layer1.k_rope", k },
		                 { "layer1.v_proj", v },
		                 { "layer1.attn_context", context } };
	vn_plan    *p = NULL;
	explained   e;

	fill_context(1);
	for (int i = 0; i < TOKENS * H * K; i++)
		plain_q[i] = -q[i];
	compare_given(&e, CALL, 0, of, 5);
	stand_at(&e, "layer1.attn_context", 0);
	CU_ASSERT_EQUAL_FATAL(vn_plan_clone(e.t.site->plan, &p, &e.err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_const_set(&p->node[node_named(&e, "layer1.q_rope")], "theta", 100, &e.err), VN_OK);
	CU_ASSERT_FALSE(vn_recompute_touched(e.t.recompute, p, e.t.site->weights));
	CU_ASSERT_TRUE(run(&e, p, 0, CALL) < 1e-6);
	vn_recompute_disregard(e.t.recompute, vn_plan_find(p, "layer1.q_rope"));
	CU_ASSERT_TRUE(vn_recompute_touched(e.t.recompute, p, e.t.site->weights));
	CU_ASSERT_TRUE(run(&e, p, 0, CALL) > 1e-2);
	vn_recompute_disregard(e.t.recompute, -1);
	CU_ASSERT_TRUE(run(&e, p, 0, CALL) < 1e-6);
	vn_plan_destroy(p);
	end_explained(&e);
}

/* (head, token, key): a side output. */
static void probabilities_are_computed_row_by_row(void)
{
	const given of[] = {
		{ "layer1.q_rope", q }, { "layer1.k_rope", k }, { "layer1.v_proj", v }, { "layer1.attn_probs", probs }
	};
	double    p[TOKENS], y[K], x[H * CALL * CALL], most = 0;
	vn_tensor out;
	explained e;

	make_up_inputs();
	compare_given(&e, CALL, 0, of, 4);
	stand_at(&e, "layer1.attn_probs", 0);
	CU_ASSERT_EQUAL_FATAL(
		vn_recompute_run(e.t.recompute, e.t.site->plan, e.t.site->weights, VN_FINE_WIDTH, &out, &e.err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_shape_count(&out.shape), H * CALL * CALL);
	vn_to_f64(x, out.data, out.dtype, H * CALL * CALL);
	for (int h = 0; h < H; h++)
		for (int t = 0; t < CALL; t++) {
			attend(&(mistake) { 0 }, t, h, p, y);
			for (int j = 0; j < CALL; j++)
				most = fmax(most, fabs(x[(h * CALL + t) * CALL + j] - p[j]));
		}
	CU_ASSERT_TRUE(most < 1e-12);
	vn_tensor_free(&out);
	end_explained(&e);
}

/* Of all tokens, also those of earlier steps. */
static void an_input_is_that_of_all_tokens(void)
{
	double    x[S * G * K];
	vn_tensor in;
	explained e;

	fill_context(1);
	stand_at_context(&e, CALL, 1, 1);
	CU_ASSERT_EQUAL_FATAL(vn_recompute_input(e.t.recompute, VN_ATTN_K, VN_FINE_WIDTH, &in, &e.err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_shape_count(&in.shape), S * G * K);
	vn_to_f64(x, in.data, in.dtype, S * G * K);
	for (int i = 0; i < S * G * K; i++)
		CU_ASSERT_EQUAL(x[i], (double)k[i]);
	end_explained(&e);
}

/* The share of the candidate's squares, over all rows where they are few. */
static void an_estimate_measures_the_error_of_a_few_tokens(void)
{
	enum { FEW = 6 };
	double    p[TOKENS], y[K], dd = 0, cc = 0, off;
	explained e;

	fill_context(2);
	for (int t = 0; t < FEW; t++)
		for (int h = 0; h < H; h++) {
			attend(&(mistake) { 0 }, t, h, p, y);
			for (int d = 0; d < K; d++) {
				const double is = (double)context[(t * H + h) * K + d];
				dd += (y[d] - is) * (y[d] - is);
				cc += is * is;
			}
		}
	stand_at_context(&e, FEW, 0, 0);
	CU_ASSERT_EQUAL(vn_recompute_estimate_tokens(e.t.recompute, e.t.site->plan, e.t.site->weights, &off, &e.err),
	                VN_OK);
	CU_ASSERT_DOUBLE_EQUAL(off, dd / cc, 1e-5 * dd / cc);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(each_step_computes_its_own_rows),
		TEST(a_changed_plan_computes_what_it_says),
		TEST(unrecorded_rotations_are_computed),
		TEST(a_disregarded_value_is_computed_by_the_plan),
		TEST(probabilities_are_computed_row_by_row),
		TEST(an_input_is_that_of_all_tokens),
		TEST(an_estimate_measures_the_error_of_a_few_tokens),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("recompute_run", tests);
	return !remove_folder() || failed;
}
