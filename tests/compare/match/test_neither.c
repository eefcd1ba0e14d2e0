/* test_neither.c: tests compare/match/neither.c. */
#include "tests/support/explain_help.h"

/* A prompt of two tokens and one later step. */
enum { CALL = 2, STEPS = 1, N = 3 * 128 };

static float x[N];

/* How many values of these points both sides lack, of n that were recorded. */
static int64_t lacking(const char *const *point, int n_points, const given *of, int n)
{
	explained e = {
		.compared.o = { .points = point, .n_points = n_points, .model = LLAMA, .replay = VN_REPLAY_NEVER, .threads = 1 }
	};

	for (int i = 0; i < N; i++)
		x[i] = given_number(i, 1);
	CU_ASSERT_EQUAL_FATAL(record_given("some.h5", CALL, STEPS, of, n, &e.err), VN_OK);
	judge(&e.compared, "some.h5", "some.h5", NULL, LOOSE);
	const int64_t lacks = e.compared.c.result.unpaired.n_neither;
	finish(&e.compared);
	return lacks;
}

static void what_both_sides_lack_is_counted_in_each_step(void)
{
	static const char *const queries[] = { "layer1.q_*" }, *const norms[] = { "layer*_norm" };
	const given of[] = { { "layer1.q_proj", x }, { "layer0.mlp_norm", x } };

	CU_ASSERT_EQUAL(lacking(queries, 1, of, 2), 2); /* q_rope in two steps */
	CU_ASSERT_EQUAL(lacking(norms, 1, of, 2), 6);   /* three of four */
}

/* layer0.input is embed, and layer1.input is layer0.output: three values with layer1.output. */
static void two_names_of_one_value_count_once(void)
{
	static const char *const ends[] = { "layer?.*put" };
	const given              of[] = { { "layer1.input", x } };

	CU_ASSERT_EQUAL(lacking(ends, 1, of, 1), 4);
}

/* gate_act exists only inside an operation, unless a recording asks for it. */
static void what_is_computed_on_demand_does_not_count(void)
{
	static const char *const gate[] = { "layer1.gate_*" };
	const given              of[] = { { "layer1.gate_proj", x } };

	CU_ASSERT_EQUAL(lacking(gate, 1, of, 1), 0);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(what_both_sides_lack_is_counted_in_each_step),
		TEST(two_names_of_one_value_count_once),
		TEST(what_is_computed_on_demand_does_not_count),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("neither", tests);
	return !remove_folder() || failed;
}
