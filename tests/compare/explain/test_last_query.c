/* test_last_query.c: tests compare/explain/last_query.c. */
#include "compare/explain/last_query.h"
#include "tests/support/explain_help.h"

/* layer1 of the llama: a prompt of twelve tokens and one step. */
enum { CALL = 12, S = CALL + 1, H = 6, G = 2, K = 8 };

static float q[S * H * K], k[S * G * K], v[S * G * K], context[S * H * K];

static void stand_at_step(explained *e, const char *name, int step)
{
	const given of[] = {
		{ "layer1.q_rope", q }, { "layer1.k_rope", k }, { "layer1.v_proj", v }, { "layer1.attn_context", context }
	};

	for (int i = 0; i < S * H * K; i++) {
		q[i] = given_number(i, 1);
		context[i] = given_number(i, 4);
	}
	for (int i = 0; i < S * G * K; i++) {
		k[i] = given_number(i, 2);
		v[i] = given_number(i, 3);
	}
	compare_given(e, CALL, 1, of, 4);
	stand_at(e, name, step);
}

static void expect_numbers(const double *got, const float *want, int n)
{
	for (int i = 0; i < n; i++)
		CU_ASSERT_EQUAL(got[i], (double)want[i]);
}

/* step 0: the prompt, whose last query is one of twelve; step 1: a query that is alone. */
static void it_reads_the_last_query_and_all_keys_before_it(void)
{
	for (int step = 0; step < 2; step++) {
		const int     last = step ? CALL : CALL - 1;
		vn_last_query l;
		explained     e;

		stand_at_step(&e, "layer1.attn_context", step);
		CU_ASSERT_TRUE_FATAL(vn_last_query_find(&e.t, &l));
		CU_ASSERT_EQUAL(l.output, VN_ATTN_CONTEXT);
		CU_ASSERT_EQUAL(l.S, last + 1);
		CU_ASSERT_EQUAL(l.past, step ? CALL : 0);
		CU_ASSERT_EQUAL(l.first, 0);
		CU_ASSERT_EQUAL(l.single, step);
		CU_ASSERT_TRUE_FATAL(l.H == H && l.G == G && l.K == K);
		CU_ASSERT_EQUAL(vn_last_query_width(&l), K);
		CU_ASSERT_TRUE_FATAL(vn_last_query_read(&e.t, &l));
		expect_numbers(l.q, q + last * H * K, H * K);
		expect_numbers(l.is, context + last * H * K, H * K);
		expect_numbers(l.k, k, (last + 1) * G * K);
		expect_numbers(l.v, v, (last + 1) * G * K);
		/* Heads 3 to 5 read key head 1. */
		CU_ASSERT_PTR_EQUAL(vn_last_query_row(&l, l.k, 5, 2), l.k + 5 * G * K);
		CU_ASSERT_PTR_EQUAL(vn_last_query_row(&l, l.k, 5, 3), l.k + (5 * G + 1) * K);
		vn_last_query_close(&l);
		end_explained(&e);
	}
}

static void another_operation_has_no_last_query(void)
{
	vn_last_query l;
	explained     e;

	stand_at_step(&e, "layer1.v_proj", 0);
	CU_ASSERT_FALSE(vn_last_query_find(&e.t, &l));
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(it_reads_the_last_query_and_all_keys_before_it),
		TEST(another_operation_has_no_last_query),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("last_query", tests);
	return !remove_folder() || failed;
}
