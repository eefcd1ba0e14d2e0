/* test_error_shape.c: tests compare/explain/error_shape.c. */
#include "compare/explain/error_shape.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T = 12, N = 10 };

static double unmodified[T * N], found[T * N];

/* Numbers from 1 to 2, positive, of no pattern. */
static void begin(void)
{
	for (int i = 0; i < T * N; i++)
		unmodified[i] = found[i] = 1 + (37 * i % 101) / 101.0;
}

/* The sentence about the error's shape in `rows` tokens; "" if there is none. */
static const char *said_of(int rows, const char *axes)
{
	static char     text[400];
	vn_node         node = { .op = VN_OP_RMS_NORM };
	vn_value        value = { .node = 0 };
	const vn_plan   plan = { .n_nodes = 1, .n_values = 1, .node = &node, .value = &value };
	const vn_tensor own = { VN_F64, { 2, { rows, N } }, unmodified }, cand = { VN_F64, { 2, { rows, N } }, found };
	const vn_site   site = { .plan = &plan, .cand = cand, .axes = axes };
	const vn_compare_options options = { .threads = 1 };
	vn_comparison            c = { .opened = { .policy.storage = VN_F32, .request.options = &options } };
	vn_findings              x = { .unmodified.residual.floor_token = 1e-14 };
	vn_failure               failed = { .st = VN_OK };
	vn_case                  t = {
						 .failed = &failed,
						 .opened = &c.opened,
						 .result = &c.result,
						 .site = &site,
						 .x = &x,
	};

	t.own = t.fine = own;
	vn_error_shape(&t);
	CU_ASSERT_EQUAL_FATAL(failed.st, VN_OK);
	*text = 0;
	for (int i = 0; i < x.error_shape.n; i++)
		if (strstr(x.error_shape.line[i], "explains all"))
			snprintf(text, sizeof text, "%s", x.error_shape.line[i]);
	vn_lines_free(&x.error_shape);
	return text;
}

static const char *said(void)
{
	return said_of(T, "token hidden");
}

static void a_number_added_to_two_channels_is_a_bias(void)
{
	begin();
	for (int t = 0; t < T; t++) {
		found[t * N + 3] += 0.5;
		found[t * N + 7] -= 0.25;
	}
	CU_ASSERT_STRING_EQUAL(said(), "a number added to each channel, the same in every token, as from a bias: channel 3 "
	                               "+ 0.5, channel 7 - 0.25; this explains all of the error");
}

static void a_factor_of_each_channel_is_a_weight_of_a_norm(void)
{
	begin();
	for (int t = 0; t < T; t++) {
		found[t * N + 1] *= 1.15;
		found[t * N + 8] = 0;
	}
	CU_ASSERT_STRING_EQUAL(said(), "a factor for each channel, the same in every token, as from the weight of a norm: "
	                               "channel 1 x 1.15, channel 8 is 0; this explains all of the error");
	begin();
	for (int i = 0; i < T * N; i++) /* too many to name: from 0.9 to 1.08 */
		found[i] *= 0.9 + 0.02 * (i % N);
	CU_ASSERT_STRING_EQUAL(said(), "a factor for each channel, the same in every token, as from the weight of a norm: "
	                               "from x 0.9 to x 1.08; this explains all of the error");
}

static void the_same_of_tokens_is_a_mean_or_the_statistics_of_a_norm(void)
{
	begin();
	for (int i = 0; i < N; i++)
		found[5 * N + i] += 2;
	CU_ASSERT_STRING_EQUAL(said(), "a number added to each token, the same in every channel, as from a mean: token 5 + "
	                               "2; this explains all of the error");
	begin();
	for (int i = 0; i < N; i++)
		found[2 * N + i] *= -1;
	CU_ASSERT_STRING_EQUAL(said(), "a factor for each token, the same in every channel, as from the statistics of a "
	                               "norm: token 2 x -1; this explains all of the error");
}

/* One number of the twelve is 0.2 away from the shape. */
static void what_a_shape_leaves_is_said(void)
{
	begin();
	for (int t = 0; t < T; t++)
		found[t * N + 4] += t == 6 ? 1.2 : 1;
	/* the addend is 1 + 0.2 / 12; left are 0.04 - 0.04 / 12 = 0.03667, of 11 + 1.44 = 12.44 */
	CU_ASSERT_STRING_EQUAL(said(), "a number added to each channel, the same in every token, as from a bias: channel 4 "
	                               "+ 1.017; this explains all but 0.29 % of the error");
}

static void an_error_of_no_shape_is_not_given_one(void)
{
	begin();
	CU_ASSERT_STRING_EQUAL(said(), ""); /* none at all */
	for (int i = 0; i < T * N; i++)
		found[i] += (i * 53 % 97) / 97.0 - 0.5;
	CU_ASSERT_STRING_EQUAL(said(), "");
}

static void few_tokens_or_other_axes_show_no_shape(void)
{
	begin();
	for (int t = 0; t < T; t++)
		found[t * N + 3] += 0.5;
	CU_ASSERT_STRING_NOT_EQUAL(said_of(8, "token hidden"), "");
	CU_ASSERT_STRING_EQUAL(said_of(7, "token hidden"), "");
	CU_ASSERT_STRING_EQUAL(said_of(T, "key hidden"), "");
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_number_added_to_two_channels_is_a_bias),
		TEST(a_factor_of_each_channel_is_a_weight_of_a_norm),
		TEST(the_same_of_tokens_is_a_mean_or_the_statistics_of_a_norm),
		TEST(what_a_shape_leaves_is_said),
		TEST(an_error_of_no_shape_is_not_given_one),
		TEST(few_tokens_or_other_axes_show_no_shape),
		CU_TEST_INFO_NULL,
	};
	return run_suite("error shape", tests);
}
