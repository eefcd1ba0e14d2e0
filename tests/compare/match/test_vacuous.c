/* test_vacuous.c: tests compare/match/vacuous.c, agreement that proves nothing. */
#include "compare/match/match.h"
#include "tests/support/matched_help.h"

#include "capture/store/store.h"

enum { W = 32, T = 2 };

static vn_plan *plan;
static double   unit = 0.25; /* what all recorded numbers are multiples of */

/* Two layers of one operation each. */
static void make_plan(void)
{
	vn_builder *b = vn_plan_begin(2, 16, 64);
	const int   table = vn_plan_weight(b, "embed", 2, (int64_t[]) { 16, W }),
			  square = vn_plan_weight(b, "square", 2, (int64_t[]) { W, W });
	int x;

	vn_plan_layer(b, -1);
	x = vn_plan_embed(b, table, VN_POINT_EMBED);
	for (int layer = 0; layer < 2; layer++) {
		vn_plan_layer(b, layer);
		x = vn_plan_linear(b, x, square, -1, 0, VN_POINT_OUTPUT);
	}
	vn_plan_layer(b, -1);
	vn_plan_linear(b, x, table, -1, 0, VN_POINT_LOGITS);
	if (vn_plan_finish(b, &plan, NULL))
		abort();
}

static vn_status file_tensor(vn_store *s, const char *name, vn_dtype dtype, const double *x, vn_error *err)
{
	const vn_sink  k = vn_store_sink(s);
	const vn_shape shape = { .rank = 2, .dim = { T, W } };
	unsigned char  block[T * W * sizeof(double)];
	vn_status      st;

	vn_from_f64(block, dtype, x, T * W);
	(void)((st = k.begin(k.ctx, vn_plan_find(plan, name), dtype, &shape, err)) ||
	       (st = k.write(k.ctx, block, T * W, err)) || (st = k.end(k.ctx, err)));
	return st;
}

/* Layer 1 holds the numbers of layer 0, of which so many are different; other: it holds others. */
static void record(const char *name, vn_dtype dtype, int different, bool other)
{
	const int32_t ids[T] = { 3, 5 }, positions[T] = { 0, 1 };
	double        x[T * W];
	vn_store     *s = NULL;
	vn_facts      f = { 0 };
	vn_error      err = { "" };
	vn_status     st;

	for (int i = 0; i < T * W; i++)
		x[i] = (i % different + 1) * unit; /* with 0.25 exact in every format up to 4 */
	vn_facts_set(&f, "engine", "test");
	vn_facts_set(&f, "precision", "%s", vn_dtype_name(dtype));
	(void)((st = vn_store_create(at(name), true, plan, &s, &err)) ||
	       (st = vn_store_run(s, &f, ids, positions, T, &err)) ||
	       (st = vn_store_step(s, &(vn_step) { 0, 0, T, 0, T }, &err)) ||
	       (st = file_tensor(s, "layer0.output", dtype, x, &err)));
	x[0] = other ? 3.5 : x[0];
	if (!st && !(st = file_tensor(s, "layer1.output", dtype, x, &err)))
		st = vn_store_commit(&s, &err);
	CU_ASSERT_EQUAL_FATAL(st, VN_OK);
}

/* The reason why the comparison of layer 1 proves nothing; NULL: it proves something. */
static const char *of_layer1(vn_dtype dtype, int different, bool other)
{
	const char *why = NULL;
	matched     m = { .o = { .threads = 1 } };

	record("ref", dtype, different, other);
	record("cand", dtype, different, other);
	match_files(&m, "ref", "cand");
	CU_ASSERT_EQUAL_FATAL(m.c.result.checkpoints.n, 2);
	measure_matched(&m);
	CU_ASSERT_EQUAL_FATAL(m.st, VN_OK);
	CU_ASSERT_EQUAL(vn_match_find_vacuous(&m.c.opened, &m.c.result.checkpoints, &m.err), VN_OK);
	why = m.c.result.checkpoints.of[1].vacuous;
	CU_ASSERT_PTR_NULL(different > 1 ? m.c.result.checkpoints.of[0].vacuous : NULL);
	end_matched(&m);
	return why;
}

/* 64 bits of significands, the leading ones left out. */
static void another_layers_numbers_count_from_so_many_different_ones_on(void)
{
	static const struct {
		vn_dtype dtype;
		int      enough;
	} row[] = { { VN_F64, 2 }, { VN_F32, 3 }, { VN_F16, 7 }, { VN_BF16, 10 } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		CU_ASSERT_PTR_NULL(row[i].enough > 2 ? of_layer1(row[i].dtype, row[i].enough - 1, false) : NULL);
		const char *why = of_layer1(row[i].dtype, row[i].enough, false);
		CU_ASSERT_PTR_NOT_NULL_FATAL(why);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, "another layer"));
	}
}

/* As ids of experts, in float32: 15 of 4 bits each, 16 of 5. */
static void whole_numbers_have_the_bits_of_the_largest(void)
{
	unit = 1;
	CU_ASSERT_PTR_NULL(of_layer1(VN_F32, 15, false));
	CU_ASSERT_PTR_NOT_NULL(of_layer1(VN_F32, 16, false));
	unit = 0.25;
}

static void one_number_that_is_another_proves_something(void)
{
	CU_ASSERT_PTR_NULL(of_layer1(VN_F32, 20, true));
}

static void one_number_everywhere_proves_nothing(void)
{
	const char *why = of_layer1(VN_F32, 1, false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(why);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "one constant"));
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(another_layers_numbers_count_from_so_many_different_ones_on),
		TEST(whole_numbers_have_the_bits_of_the_largest),
		TEST(one_number_that_is_another_proves_something),
		TEST(one_number_everywhere_proves_nothing),
		CU_TEST_INFO_NULL,
	};
	make_plan();
	if (!make_folder())
		return 1;
	const int failed = run_suite("vacuous", tests);
	vn_plan_destroy(plan);
	return !remove_folder() || failed;
}
