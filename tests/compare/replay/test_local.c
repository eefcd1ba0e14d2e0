/* test_local.c: tests compare/replay/local.c, errors in units of a precision's own error. */
#include "compare/replay/local.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stddef.h>

enum { T = 16, D = 32, N = T * D };

static float a[N], b[N], c[N];

/* a is b, rounded to half; c is a. */
static void make_tensors(void)
{
	for (int i = 0; i < N; i++) {
		b[i] = (float)sin(1.3 * i + 0.2);
		a[i] = vn_f16_to_f32(vn_f32_to_f16(b[i]));
		c[i] = a[i];
	}
}

static vn_replayed measure(void)
{
	const vn_shape  s = { 2, { T, D } };
	const vn_tensor x = { VN_F32, s, a }, y = { VN_F32, s, b }, z = { VN_F32, s, c };
	vn_replayed     l;
	vn_error        err = { "" };

	const vn_local_tensors of = { .a = &x, .b = &y, .c = &z, .axes = "token hidden", .storage = VN_F16, .threads = 1 };
	CU_ASSERT_EQUAL_FATAL(vn_local_measure(&of, &l, NULL, &err), VN_OK);
	return l;
}

static void a_fourth_tensor_is_measured_beside_the_others(void)
{
	make_tensors();
	c[7] += 0.5f;
	const vn_replayed alone = measure();
	const vn_shape    s = { 2, { T, D } };
	const vn_tensor   x = { VN_F32, s, a }, y = { VN_F32, s, b }, z = { VN_F32, s, c };
	vn_replayed       l;
	vn_measured       given, want;
	vn_error          err = { "" };

	CU_ASSERT_EQUAL(vn_measure_brief(&z, &y, "token hidden", 1, &want, &err), VN_OK);
	for (int threads = 1; threads <= 8; threads *= 2) {
		const vn_local_tensors of = { &x, &y, &z, &z, "token hidden", VN_F16, false, threads };
		CU_ASSERT_EQUAL(vn_local_measure(&of, &l, &given, &err), VN_OK);
		CU_ASSERT_EQUAL(memcmp(&l, &alone, offsetof(vn_replayed, gain)), 0); /* all of these are double */
		CU_ASSERT(l.bad == alone.bad && l.not_measured == alone.not_measured &&
		          l.independent_numbers == alone.independent_numbers);
		CU_ASSERT(l.gain == alone.gain && l.span == alone.span && l.charged_to == -1 && alone.charged_to == -1);
		CU_ASSERT(!l.recorder_fault && !l.wrong_in_order && l.columns == alone.columns);
		CU_ASSERT_EQUAL(given.value[VN_M_NMSE], want.value[VN_M_NMSE]);
	}
}

static void what_is_as_computed_has_no_error_and_a_floor(void)
{
	make_tensors();
	const vn_replayed l = measure();
	CU_ASSERT_EQUAL(l.local, 0);
	CU_ASSERT(l.floor > 1e-8 && l.floor < 1e-7); /* 2^-24 or so, of half an ulp of half */
	CU_ASSERT_EQUAL(vn_local_ratio(&l), 0);
	CU_ASSERT(vn_local_limit_fraction(&l, N) <= 1);
}

static void a_format_that_rounds_more_has_a_larger_floor(void)
{
	make_tensors();
	for (int i = 0; i < N; i++)
		b[i] = a[i] * 1.001f;
	const vn_replayed l = measure();
	CU_ASSERT_DOUBLE_EQUAL(l.floor, 1e-6, 1e-8);
}

static void of_a_run_in_float64_what_others_compute_in_float32_is_judged_so(void)
{
	vn_node norm = { .op = VN_OP_RMS_NORM, .out = { 1 } }, product = { .op = VN_OP_LINEAR, .out = { 1 } },
			attention = { .op = VN_OP_ATTENTION, .n_out = VN_ATTN_PROBS + 1 };

	attention.out[VN_ATTN_CONTEXT] = 1;
	attention.out[VN_ATTN_SCORES] = 2;
	attention.out[VN_ATTN_PROBS] = 3;
	CU_ASSERT_EQUAL(vn_local_format(&norm, 1, 1, VN_F64), VN_F32);
	CU_ASSERT_EQUAL(vn_local_format(&product, 1, 1, VN_F64), VN_F64);
	CU_ASSERT_EQUAL(vn_local_format(&product, 1, 2, VN_F64), VN_F32); /* together with what may be a norm */
	CU_ASSERT_EQUAL(vn_local_format(&attention, 3, 1, VN_F64), VN_F32);
	CU_ASSERT_EQUAL(vn_local_format(&attention, 2, 1, VN_F64), VN_F64);
	CU_ASSERT_EQUAL(vn_local_format(&norm, 1, 1, VN_BF16), VN_BF16);
}

static void an_error_of_four_floors_is_the_limit(void)
{
	double sum = 0, off = 0;

	make_tensors();
	const vn_replayed correct = measure();
	for (int i = 0; i < N; i++)
		sum += (double)a[i] * (double)a[i];
	for (int i = 0; i < N; i++) /* alike in every number */
		c[i] = a[i] + (float)(sqrt(3.9 * correct.floor * sum / N) * (i % 2 ? 1 : -1));
	vn_replayed l = measure();
	off = vn_local_ratio(&l);
	CU_ASSERT_DOUBLE_EQUAL(off, 3.9, 0.01);
	CU_ASSERT(vn_local_limit_fraction(&l, N) <= 1);
	CU_ASSERT(vn_local_limit_fraction(&l, VN_SMALL_SAMPLE - 1) <= 0.25); /* few numbers may be four times as far off */
	for (int i = 0; i < N; i++)
		c[i] = a[i] + (float)(sqrt(4.1 * correct.floor * sum / N) * (i % 2 ? 1 : -1));
	l = measure();
	CU_ASSERT(vn_local_limit_fraction(&l, N) > 1);
}

/* nmse over all tokens does not see it. */
static void one_wrong_number_is_beyond_by_its_own_size(void)
{
	make_tensors();
	c[5 * D + 3] += 0.002f; /* six floors of its token */
	const vn_replayed l = measure();
	CU_ASSERT(vn_local_ratio(&l) < VN_LOCAL_LIMIT);
	CU_ASSERT(vn_local_worst(&l) > VN_PEAK_LIMIT);
	CU_ASSERT(vn_local_limit_fraction(&l, N) > 1);
}

static void what_is_not_finite_on_one_side_is_beyond_any_floor(void)
{
	make_tensors();
	c[7] = NAN;
	vn_replayed l = measure();
	CU_ASSERT_EQUAL(l.bad, 1);
	CU_ASSERT(isinf(vn_local_ratio(&l)));
	make_tensors();
	a[7] = b[7] = c[7] = INFINITY;
	l = measure();
	CU_ASSERT_EQUAL(l.bad, 0);
	CU_ASSERT(isfinite(vn_local_ratio(&l)));
}

static void another_correct_implementation_raises_the_floor(void)
{
	const vn_shape  s = { 2, { T, D } };
	const vn_tensor x = { VN_F32, s, a }, z = { VN_F32, s, c };
	vn_replayed     most = { 0 };
	vn_error        err = { "" };

	make_tensors();
	for (int i = 0; i < N; i++)
		c[i] *= 1.01f;
	vn_replayed l = measure();
	CU_ASSERT(vn_local_limit_fraction(&l, N) > 1);
	CU_ASSERT_EQUAL(vn_local_other(&z, &x, "token hidden", 1, &most, &err), VN_OK);
	CU_ASSERT_DOUBLE_EQUAL(most.floor, 1e-4, 1e-6);
	vn_local_allow(&l, &most);
	CU_ASSERT(vn_local_limit_fraction(&l, N) <= 1);
}

static void few_independent_numbers_may_be_farther_off(void)
{
	vn_checkpoint p = { .m.n = 432,
		                .replayed = true,
		                .replay = { .independent_numbers = 432, .local = 5, .floor = 1 } };
	CU_ASSERT_TRUE(vn_local_beyond(&p));
	p.replay.independent_numbers = 10; /* that carry 432 probabilities */
	CU_ASSERT_FALSE(vn_local_beyond(&p));
	p.replay.local = 17;
	CU_ASSERT_TRUE(vn_local_beyond(&p));
}

/* Of 400 degrees of freedom 1.33 times 3, of 5 nearly 7 times 3. */
static void a_span_is_judged_by_its_own_floor_and_its_degrees_of_freedom(void)
{
	vn_span_floor f = { .nmse = 1e-6, .token = 4e-6, .max = 1e-3, .largest = 1, .freedom = 400 };
	vn_checkpoint p = { .m.n = N, .replayed = true, .replay = { .span = VN_SPAN_CLEARED + 1, .local = 3.9e-6 } };

	CU_ASSERT_FALSE(vn_local_judges(&p)); /* it has no floor */
	CU_ASSERT_FALSE(vn_local_beyond(&p));
	vn_local_take_floor(&p.replay, &f, VN_F16);
	CU_ASSERT_TRUE(vn_local_judges(&p));
	CU_ASSERT_EQUAL(p.replay.independent_numbers, 400);
	CU_ASSERT_FALSE(vn_local_beyond(&p));
	p.replay.local = 4.1e-6;
	CU_ASSERT_TRUE(vn_local_beyond(&p));
	CU_ASSERT_DOUBLE_EQUAL(vn_local_least_seen(&p.replay), sqrt(3.99e-6), 1e-5);
	f.freedom = 5;
	vn_local_take_floor(&p.replay, &f, VN_F16);
	p.replay.local = 18e-6;
	CU_ASSERT_FALSE(vn_local_beyond(&p));
	vn_local_set_slack(&p.replay, (double)INFINITY); /* its steps together are beyond chance */
	CU_ASSERT_TRUE(vn_local_beyond(&p));
	f.nmse = f.token = f.max = 0; /* copies: at least one rounding */
	vn_local_take_floor(&p.replay, &f, VN_F16);
	p.replay.local = 4e-8;
	CU_ASSERT_FALSE(vn_local_beyond(&p));
}

/* Quantiles of chi^2 over its degrees of freedom at 1 - 1e-5: 11.5, 3.7, 1.72; the approximation
 * has 12.3 for the first. */
static void chance_is_that_of_a_mean_of_squares(void)
{
	CU_ASSERT_DOUBLE_EQUAL(vn_local_chance(2), 11.5, 1);
	CU_ASSERT_DOUBLE_EQUAL(vn_local_chance(12), 3.7, 0.15);
	CU_ASSERT_DOUBLE_EQUAL(vn_local_chance(100), 1.72, 0.02);
}

static void what_was_not_replayed_has_no_number(void)
{
	const vn_checkpoint p = { .replay = { .local = 1, .floor = 1e-9 } };
	CU_ASSERT(isnan(vn_local_over_floor(&p)));
	CU_ASSERT(isnan(vn_local_peak(&p)));
	CU_ASSERT_FALSE(vn_local_beyond(&p));
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_fourth_tensor_is_measured_beside_the_others),
		TEST(what_is_as_computed_has_no_error_and_a_floor),
		TEST(a_format_that_rounds_more_has_a_larger_floor),
		TEST(of_a_run_in_float64_what_others_compute_in_float32_is_judged_so),
		TEST(an_error_of_four_floors_is_the_limit),
		TEST(one_wrong_number_is_beyond_by_its_own_size),
		TEST(what_is_not_finite_on_one_side_is_beyond_any_floor),
		TEST(another_correct_implementation_raises_the_floor),
		TEST(few_independent_numbers_may_be_farther_off),
		TEST(a_span_is_judged_by_its_own_floor_and_its_degrees_of_freedom),
		TEST(chance_is_that_of_a_mean_of_squares),
		TEST(what_was_not_replayed_has_no_number),
		CU_TEST_INFO_NULL,
	};
	return run_suite("local", tests);
}
