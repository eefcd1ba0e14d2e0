/* test_leading.c: tests compare/rearrange/leading.c. */
#include "compare/rearrange/rearranged.h"
#include "tests/support/projection_help.h"

#include "compare/trial/score.h"

#include <string.h>

/* Tries distances at q_proj. Returns the number of answers, at most one. */
static int tried(vn_trial *h)
{
	const given of[] = {
		{ "layer0.q_proj", other }, { "layer0.output", input }, { "layer1.attn_norm", x }, { "layer1.q_proj", q }
	};
	vn_rearranged r;
	explained     e;

	compare_given(&e, T, 0, of, 4);
	stand_at(&e, "layer1.q_proj", 0);
	CU_ASSERT_EQUAL_FATAL((vn_rearranged_open(&r, &e.t), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL((vn_rearrange_leading(&r), e.failed.st), VN_OK);
	vn_rearranged_close(&r);
	vn_case_conclude(&e.t);
	const int n = e.x.n_fit;
	*h = n ? e.x.by[0] : (vn_trial) { 0 };
	end_explained(&e);
	return n;
}

static void is_found(const vn_trial *h, vn_leading_of of, int apart)
{
	CU_ASSERT_EQUAL(h->finding, VN_FINDING_LEADING);
	CU_ASSERT_EQUAL(h->applied.result.factor, (int)of);
	CU_ASSERT_EQUAL(h->applied.result.number, apart);
	CU_ASSERT_EQUAL(h->applied.result.list[0], N);
}

static void a_right_product_has_no_other_distance(void)
{
	vn_trial h;

	fill();
	CU_ASSERT_EQUAL(tried(&h), 0);
}

/* The rows of a wider buffer (T,96), of which the first numbers were recorded. */
static void rows_of_a_wider_buffer_are_found(void)
{
	float    wide[2 * T * N];
	vn_trial h;

	fill();
	for (int t = 0; t < T; t++)
		for (int i = 0; i < N; i++) {
			wide[2 * t * N + i] = q[t * N + i];
			wide[(2 * t + 1) * N + i] = other[t * N + i];
		}
	memcpy(q, wide, sizeof q);
	CU_ASSERT_EQUAL_FATAL(tried(&h), 1);
	is_found(&h, VN_LEADING_RESULT, 2 * N);
}

/* Other numbers in every second row are no wider buffer: the rows between are not the next ones. */
static void other_rows_are_no_wider_buffer(void)
{
	vn_trial h;

	fill();
	for (int t = 1; t < T; t += 2)
		memcpy(q + t * N, other + t * N, N * sizeof *q);
	CU_ASSERT_EQUAL(tried(&h), 0);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_right_product_has_no_other_distance),
		TEST(rows_of_a_wider_buffer_are_found),
		TEST(other_rows_are_no_wider_buffer),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("leading", tests);
	return !remove_folder() || failed;
}
