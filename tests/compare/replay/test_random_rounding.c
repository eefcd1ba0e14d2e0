/* test_random_rounding.c: tests compare/replay/random_rounding.c: how large the errors are, and
 * that they are the same on any number of threads. */
#include "compare/replay/random_rounding.h"
#include "tests/support/suite.h"

#include <math.h>

enum { T = 64, IN = 400, OUT = 256, N = T * OUT };

static double x[N], y[N];

/* One node: value 0 (T, IN) -> value 1 (T, OUT). */
static vn_node  node[1];
static vn_value value[2];
static vn_plan  plan = { .n_nodes = 1, .n_values = 2, .node = node, .value = value };

static void make_node(vn_op op)
{
	node[0] = (vn_node) { .op = op, .n_in = 1, .n_out = 1, .in = { 0 }, .out = { 1 } };
	value[0] = (vn_value) { .state = -1, .alias_of = -1, .rank = 2, .size = { VN_T, IN } };
	value[1] = (vn_value) { .state = -1, .alias_of = -1, .rank = 2, .size = { VN_T, OUT } };
	for (int i = 0; i < N; i++)
		x[i] = y[i] = 1.5 * (i % 2 ? -1 : 1); /* the ulp of 1 */
}

static vn_random_rounding in_format(vn_dtype storage, vn_dtype sums, int threads)
{
	return (vn_random_rounding) { .plan = &plan,
		                          .width = VN_F64,
		                          .policy = { storage, sums, VN_PRODUCTS_PLAIN, { 0 } },
		                          .seed = 7,
		                          .threads = threads };
}

/* Root mean square of y - x, and the mean of it, in ulps of 1 of the format. */
static double error_in_ulps(vn_dtype storage, double *mean)
{
	double dd = 0, d = 0;
	for (int i = 0; i < N; i++) {
		dd += (y[i] - x[i]) * (y[i] - x[i]);
		d += y[i] - x[i];
	}
	*mean = ldexp(d / N, vn_dtype_digits(storage));
	return ldexp(sqrt(dd / N), vn_dtype_digits(storage));
}

static void a_result_is_off_by_less_than_half_an_ulp_in_the_mean(void)
{
	static const vn_dtype of[] = { VN_F32, VN_F16, VN_BF16 };
	for (int i = 0; i < 3; i++) {
		const vn_random_rounding r = in_format(of[i], VN_F32, 2);
		double                   mean;
		make_node(VN_OP_ADD);
		vn_round_at_random(&r, 0, 0, T, y);
		CU_ASSERT_DOUBLE_EQUAL(error_in_ulps(of[i], &mean), 0.41, 0.01);
		CU_ASSERT_DOUBLE_EQUAL(mean, 0, 0.02);
	}
}

static void nodes_and_seeds_have_keys_of_their_own(void)
{
	uint64_t key[64];

	for (int i = 0; i < 64; i++) { /* neighbouring nodes and seeds; 31 bits, for vn_experiment */
		key[i] = vn_random_key((uint64_t)(i / 8), i % 8) & 0x7fffffff;
		for (int j = 0; j < i; j++)
			CU_ASSERT_NOT_EQUAL(key[i], key[j]);
	}
}

/* 0.41 and 0.2 sqrt(400) ulps of float32, joined; in 16 bits the sums are too fine to show. */
static void a_product_adds_the_roundings_of_its_sum(void)
{
	static const struct {
		vn_dtype storage, sums;
		double   ulps;
	} of[] = { { VN_F32, VN_F32, 4.021 }, { VN_BF16, VN_F32, 0.41 }, { VN_F16, VN_F16, 4.021 } };
	for (int i = 0; i < 3; i++) {
		const vn_random_rounding r = in_format(of[i].storage, of[i].sums, 2);
		double                   mean;
		make_node(VN_OP_LINEAR);
		vn_round_at_random(&r, 0, 0, T, y);
		CU_ASSERT_DOUBLE_EQUAL(error_in_ulps(of[i].storage, &mean), of[i].ulps, 0.03 * of[i].ulps);
	}
}

static void copies_ids_and_zeros_stay(void)
{
	static const vn_op       copies[] = { VN_OP_EMBED, VN_OP_POSITIONS, VN_OP_SLICE, VN_OP_TOP_K };
	const vn_random_rounding r = in_format(VN_F16, VN_F32, 2);
	for (int i = 0; i < 4; i++) {
		make_node(copies[i]);
		vn_round_at_random(&r, 0, 0, T, y);
		CU_ASSERT_EQUAL(memcmp(x, y, sizeof x), 0);
	}
	make_node(VN_OP_ADD);
	y[3] = 0;
	y[4] = 0x1p-30; /* below the normal numbers of float16, whose ulp is 2^-24 */
	vn_round_at_random(&r, 0, 0, T, y);
	CU_ASSERT_EQUAL(y[3], 0);
	CU_ASSERT(y[4] != 0x1p-30 && fabs(y[4] - 0x1p-30) < 0x1p-24);
}

static void threads_and_calls_change_nothing_but_seeds_do(void)
{
	static double            one[N];
	const vn_random_rounding alone = in_format(VN_F32, VN_F32, 1), many = in_format(VN_F32, VN_F32, 3);
	vn_random_rounding       other = alone;

	make_node(VN_OP_LINEAR);
	vn_round_at_random(&alone, 0, 0, T, y);
	memcpy(one, y, sizeof one);
	memcpy(y, x, sizeof y);
	vn_round_at_random(&many, 0, 0, T / 2, y);
	vn_round_at_random(&many, 0, T / 2, T / 2, y + N / 2);
	CU_ASSERT_EQUAL(memcmp(one, y, sizeof one), 0);
	other.seed++;
	memcpy(y, x, sizeof y);
	vn_round_at_random(&other, 0, 0, T, y);
	int same = 0;
	for (int i = 0; i < N; i++)
		same += one[i] == y[i];
	CU_ASSERT(same < N / 100);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_result_is_off_by_less_than_half_an_ulp_in_the_mean),
		TEST(nodes_and_seeds_have_keys_of_their_own),
		TEST(a_product_adds_the_roundings_of_its_sum),
		TEST(copies_ids_and_zeros_stay),
		TEST(threads_and_calls_change_nothing_but_seeds_do),
		CU_TEST_INFO_NULL,
	};
	return run_suite("random_rounding", tests);
}
