/* test_case.c: tests compare/trial/trial.c. */
#include "compare/trial/case.h"
#include "tests/support/explain_help.h"

#include <math.h>
#include <string.h>

/* ---- heads ----------------------------------------------------------------------------------- */

/* Two tokens, three heads, two columns; each head of the unmodified operation has the squares 1 + 4
 * + 9 + 16 = 30. */
enum { T = 2, H = 3, K = 2, ALL = T * H * K };

static const double unmodified[ALL] = { 1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4 };
static double       fine[ALL], cand[ALL];

static vn_tensor numbers(const double *x)
{
	return (vn_tensor) { VN_F64, { 3, { T, H, K } }, x };
}

static double *of_head(double *x, int token, int head)
{
	return x + (token * H + head) * K;
}

typedef struct stand {
	vn_site      site;
	vn_findings  x;
	vn_case      t;
	vn_head_part part;
	bool         some;
} stand;

/* All heads are right. floor: of the unmodified operation. */
static void begin(stand *s, double floor)
{
	*s = (stand) { .site = { .cand = numbers(cand), .axes = "token head channel" } };
	memcpy(fine, unmodified, sizeof fine);
	memcpy(cand, unmodified, sizeof cand);
	s->x.unmodified.residual.floor = floor;
	s->t = (vn_case) { .site = &s->site, .x = &s->x, .own = numbers(unmodified), .fine = numbers(fine) };
}

static void find_part(stand *s)
{
	s->some = vn_head_part_find(&s->t, &s->part);
}

static void the_heads_in_error_are_found(void)
{
	stand s;

	begin(&s, 1e-6);
	find_part(&s);
	CU_ASSERT_FALSE(s.some);
	of_head(cand, 1, 1)[0] += 1;
	find_part(&s);
	CU_ASSERT_TRUE(s.some);
	CU_ASSERT_EQUAL(s.part.heads, H);
	CU_ASSERT_TRUE(!s.part.in[0] && s.part.in[1] && !s.part.in[2]);
	of_head(cand, 0, 0)[1] -= 1;
	of_head(cand, 0, 2)[1] -= 1;
	find_part(&s);
	CU_ASSERT_FALSE(s.some); /* in all */
}

/* The limit is 16 floors, of 0.01 x 30, or 16 times the error of the precision, 0.5. */
static void an_error_within_sixteen_floors_is_none(void)
{
	stand s;

	begin(&s, 0.01);
	of_head(cand, 0, 2)[0] += sqrt(16 * 0.3) - 1e-6;
	find_part(&s);
	CU_ASSERT_FALSE(s.some);
	of_head(cand, 0, 2)[0] += 2e-6;
	find_part(&s);
	CU_ASSERT_TRUE(s.some && s.part.in[2]);
	begin(&s, 0);
	of_head(fine, 0, 2)[1] += sqrt(0.5);
	of_head(cand, 1, 2)[0] += sqrt(8) - 1e-6;
	find_part(&s);
	CU_ASSERT_FALSE(s.some);
	of_head(cand, 1, 2)[0] += 2e-6;
	find_part(&s);
	CU_ASSERT_TRUE(s.some && s.part.in[2]);
}

static void a_nan_is_an_error_unless_the_operation_has_it_too(void)
{
	double own[ALL];
	stand  s;

	begin(&s, 1e-6);
	of_head(cand, 0, 1)[0] = (double)NAN;
	find_part(&s);
	CU_ASSERT_TRUE(s.some && s.part.in[1]);
	memcpy(own, unmodified, sizeof own);
	of_head(own, 0, 1)[0] = (double)NAN;
	s.t.own = numbers(own);
	find_part(&s);
	CU_ASSERT_FALSE(s.some);
}

static void expect_rows(const stand *s, int64_t first, int64_t last)
{
	bool    off[T];
	int64_t a, b;

	vn_case_rows_off(&s->t, off, &a, &b);
	CU_ASSERT_EQUAL(a, first);
	CU_ASSERT_EQUAL(b, last);
	for (int64_t row = 0; row < T; row++)
		CU_ASSERT_EQUAL(off[row], row == first || row == last);
}

/* Also if the file gives the axes names of its own. */
static void the_rows_in_error_are_found(void)
{
	static const char *const axes[] = { "token head channel", "tokenA head channel", "" };
	double                   own[ALL];
	stand                    s;

	for (int i = 0; i < 3; i++) {
		begin(&s, 0);
		s.site.axes = axes[i];
		s.x.unmodified.residual.floor_token = 1e-6;
		memcpy(own, unmodified, sizeof own);
		s.t.own = numbers(own);
		expect_rows(&s, -1, -1);
		of_head(cand, 1, 2)[1] += 1;
		expect_rows(&s, 1, 1);
		of_head(own, 0, 0)[0] = of_head(cand, 0, 0)[0] = (double)INFINITY; /* the operation's own */
		expect_rows(&s, 1, 1);
		of_head(cand, 0, 0)[0] = -(double)INFINITY;
		expect_rows(&s, 0, 1);
		of_head(cand, 0, 0)[0] = 1;
		expect_rows(&s, 0, 1);
		of_head(own, 0, 0)[0] = of_head(cand, 0, 0)[0] = (double)NAN;
		expect_rows(&s, 0, 1);
	}
}

static void what_has_no_heads_or_one_has_no_part(void)
{
	static const char *const axes[] = { "token hidden", "token channel head_dim", "token hidden head" };
	vn_trial                 h = { .heads = H };
	stand                    s;

	for (int i = 0; i < 3; i++) {
		begin(&s, 1e-6);
		of_head(cand, 1, 1)[0] += 1;
		s.site.axes = axes[i];
		s.site.cand.shape = i == 2 ? (vn_shape) { 3, { T, H * K, 1 } } : (vn_shape) { 3, { T, H, K } };
		find_part(&s);
		CU_ASSERT_FALSE(s.some);
		CU_ASSERT_FALSE(vn_head_part_of(&s.t, &h, &s.part));
	}
	begin(&s, 1e-6);
	s.site.cand.shape = (vn_shape) { 3, { 1, VN_HEADS_MOST + 1, 0 } };
	find_part(&s);
	CU_ASSERT_EQUAL(s.part.heads, 0);
	begin(&s, 1e-6);
	of_head(cand, 1, 1)[0] += 1;
	s.site.axes = "token kv_head channel"; /* of keys and values */
	find_part(&s);
	CU_ASSERT_TRUE(s.some && s.part.in[1]);
}

static void a_trial_says_its_heads(void)
{
	vn_trial h = { .heads = H, .part = { true, false, true } };
	stand    s;

	begin(&s, 1e-6);
	CU_ASSERT_TRUE(vn_head_part_of(&s.t, &h, &s.part));
	CU_ASSERT_TRUE(s.part.heads == H && s.part.outer == T && s.part.inner == K);
	CU_ASSERT_TRUE(s.part.in[0] && !s.part.in[1] && s.part.in[2]);
	h.heads = 0;
	CU_ASSERT_FALSE(vn_head_part_of(&s.t, &h, &s.part));
}

static void the_other_heads_are_put_back(void)
{
	const double       want[ALL] = { -1, -2, 1, 2, 1, 2, -7, -8, 3, 4, 3, 4 };
	double             made[ALL];
	const vn_head_part part = { .in = { true }, .heads = H, .outer = T, .inner = K };
	const vn_tensor    z = numbers(made), own = numbers(unmodified);

	for (int i = 0; i < ALL; i++)
		made[i] = -1 - i;
	vn_head_part_splice(&part, &z, &own);
	for (int i = 0; i < ALL; i++)
		CU_ASSERT_EQUAL(made[i], want[i]);
}

/* ---- what a trial makes ----------------------------------------------------------------- */

/* A checkpoint of two numbers in an engine that stores float16. */
static void made_numbers_are_rounded_to_the_storage(void)
{
	static const struct {
		vn_dtype storage;
		double   want;
	} of[] = { { VN_F16, 1 + 0x1p-10 },
		       { VN_F32, 1 + 0x1p-10 + 0x1p-20 },
		       { VN_F64, 1 + 0x1p-10 + 0x1p-20 + 0x1p-40 } };

	for (int i = 0; i < 3; i++) {
		vn_comparison c = { .opened.policy.storage = of[i].storage };
		vn_site       site = { .cand = { VN_F32, { 1, { 2 } }, NULL } };
		vn_case       t = { .opened = &c.opened, .result = &c.result, .site = &site };
		vn_made       made = { 0 };

		vn_made_room(&t, &made);
		CU_ASSERT_EQUAL(vn_shape_count(&made.own.shape), 2);
		((double *)made.fine.data)[0] = 1 + 0x1p-10 + 0x1p-20 + 0x1p-40;
		((double *)made.fine.data)[1] = -3;
		vn_made_round(&t, &made);
		CU_ASSERT_EQUAL(((const double *)made.own.data)[0], of[i].want);
		CU_ASSERT_EQUAL(((const double *)made.own.data)[1], -3);
		vn_made_finish(&made);
		CU_ASSERT_PTR_NULL(made.own.data);
	}
}

static void a_table_of_its_own_leaves_the_weights_alone(void)
{
	const vn_tensor weights[] = { { .dtype = VN_F16 }, { .dtype = VN_F32 } };
	const vn_plan   p = { .n_weights = 2 };
	vn_made         made = { .weights = weights };

	made.rows = malloc(1);
	vn_made_put_weight(&made, &p, 0, VN_F64);
	CU_ASSERT_PTR_EQUAL(made.weights, made.table);
	CU_ASSERT_PTR_EQUAL(made.plan, &p);
	CU_ASSERT_EQUAL(made.table[0].dtype, VN_F64);
	CU_ASSERT_PTR_EQUAL(made.table[0].data, made.rows);
	CU_ASSERT_EQUAL(weights[0].dtype, VN_F16);
	CU_ASSERT_EQUAL(made.table[1].dtype, VN_F32);
	vn_made_finish(&made);
}

/* What is only not tried is no failure; of failures, the first stays. */
static void the_first_failure_is_kept(void)
{
	static const vn_status of[] = { VN_OK, VN_ERR_UNSUPPORTED, VN_ERR_USAGE, VN_ERR_IO, VN_ERR_SHAPE };
	vn_failure             failed = { .st = VN_OK };
	const vn_case          t = { .failed = &failed };
	vn_error               err = { "" };

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		snprintf(vn_case_error(&t)->text, sizeof err.text, "number %zu", i);
		CU_ASSERT_EQUAL(vn_case_made(&t, of[i]), of[i] == VN_OK);
		CU_ASSERT_EQUAL(vn_failure_of(&failed, &err), i < 3 ? VN_OK : VN_ERR_IO);
	}
	CU_ASSERT_STRING_EQUAL(err.text, "number 3");
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_heads_in_error_are_found),
		TEST(an_error_within_sixteen_floors_is_none),
		TEST(a_nan_is_an_error_unless_the_operation_has_it_too),
		TEST(the_rows_in_error_are_found),
		TEST(what_has_no_heads_or_one_has_no_part),
		TEST(a_trial_says_its_heads),
		TEST(the_other_heads_are_put_back),
		TEST(made_numbers_are_rounded_to_the_storage),
		TEST(a_table_of_its_own_leaves_the_weights_alone),
		TEST(the_first_failure_is_kept),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("case", tests);
	return !remove_folder() || failed;
}
