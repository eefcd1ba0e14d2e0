/* test_kernel.c: the inner loops of a comparison: equal digits on every kind of processor, the
 * values of the formats, and the data fetched ahead and given back. */
#include "compare/metrics/ahead.h"
#include "compare/metrics/average.h"
#include "compare/metrics/pages.h"
#include "tests/support/suite.h"
#include "tests/support/uniform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The formats that are converted to float32. */
static const vn_dtype narrow[] = { VN_F16, VN_BF16, VN_F32, VN_F8_E4M3, VN_F8_E5M2 };
enum { N_NARROW = sizeof narrow / sizeof *narrow };

static vn_side f64(const double *x)
{
	return (vn_side) { x, VN_F64 };
}

static vn_side f32(const float *x)
{
	return (vn_side) { x, VN_F32 };
}

/* 1 to 40, then some, then VN_BLOCK. */
static size_t longer(size_t n)
{
	const size_t more = n < 40 ? n + 1 : 2 * n + 3;
	return more > VN_BLOCK && n < VN_BLOCK ? VN_BLOCK : more;
}

/* As the kernels count (kernel_wide.inc). */
static int ulp_bucket(uint64_t distance)
{
	const float x = (float)distance;
	int32_t     bits;
	memcpy(&bits, &x, sizeof bits);
	return (bits >> 20) < 1015 ? 0 : (bits >> 20) - 1015;
}

static void buckets_are_exact_to_15_and_an_eighth_of_an_octave_above(void)
{
	for (uint64_t d = 0; d < 16; d++)
		CU_ASSERT_EQUAL(vn_ulp_bucket_top(ulp_bucket(d)), (double)d);
	for (uint64_t d = 16; d < 100000; d++) {
		const double top = vn_ulp_bucket_top(ulp_bucket(d));
		if (!(top >= (double)d && top <= (double)d * 1.125))
			CU_FAIL("a bucket is too wide");
	}
	for (uint64_t d = 100000; d < UINT64_MAX / 3; d = d * 3 / 2) {
		const double top = vn_ulp_bucket_top(ulp_bucket(d));
		CU_ASSERT(top >= (double)d && top <= (double)d * 1.125);
	}
	CU_ASSERT(ulp_bucket(UINT64_MAX) < VN_ULP_BUCKETS);
}

static void a_kernel_is_chosen_by_name_or_not_at_all(void)
{
	const vn_metric_kernel *best = vn_metric_kernel_get(0), *k;
	vn_error                err = { "" };
	for (int i = 0; (k = vn_metric_kernel_get(i)); i++) {
		CU_ASSERT_EQUAL(vn_metric_kernel_choose(k->name, &err), VN_OK);
		CU_ASSERT_PTR_EQUAL(vn_metric_kernel_best(), k);
	}
	CU_ASSERT_EQUAL(vn_metric_kernel_choose(best->name, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_metric_kernel_choose("sse9", &err), VN_ERR_UNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "this processor has"));
	CU_ASSERT_PTR_EQUAL(vn_metric_kernel_best(), best);
}

static void every_kind_of_processor_gives_the_same_digits(void)
{
	static float  r[VN_BLOCK], c[VN_BLOCK];
	static double x[VN_BLOCK], y[VN_BLOCK];
	for (int i = 0; i < VN_BLOCK; i++) {
		r[i] = (float)ldexp(uniform(), i % 40 - 20);
		c[i] = r[i] * (1 + (float)(1e-2 * uniform()));
		x[i] = 20 * uniform() - 20;
		y[i] = x[i] + uniform();
	}
	for (size_t n = 1; n <= VN_BLOCK; n = longer(n)) {
		const vn_metric_kernel *plain = &vn_metric_kernel_plain, *k;
		for (int i = 0; (k = vn_metric_kernel_get(i)); i++) {
			vn_block_sums a, b;
			plain->sums(f32(r), f32(c), n, &a);
			k->sums(f32(r), f32(c), n, &b);
			CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof a), 0);
			static double u[3][VN_BLOCK], v[3][VN_BLOCK];
			for (int twice = 0; twice < 2; twice++) {
				plain->columns(f32(r), f32(c), n, u[0], u[1], u[2]);
				k->columns(f32(r), f32(c), n, v[0], v[1], v[2]);
			}
			CU_ASSERT_EQUAL(memcmp(u, v, sizeof u), 0);
			for (size_t g = 0; g < N_NARROW; g++) {
				static vn_spread s, t;
				memset(&s, 0, sizeof s);
				memset(&t, 0, sizeof t);
				plain->spread(f32(r), f32(c), n, 0.01, narrow[g], &s);
				k->spread(f32(r), f32(c), n, 0.01, narrow[g], &t);
				CU_ASSERT_EQUAL(memcmp(&s, &t, sizeof s), 0);
			}
			vn_soft e = { .cm = 1, .shift = -0.9 }, f = e;
			plain->soft(f64(x), f64(y), n, &e);
			k->soft(f64(x), f64(y), n, &f);
			CU_ASSERT_EQUAL(memcmp(&e, &f, sizeof e), 0);
			vn_score_sums o = { .sum = 0 }, p = { .sum = 0 };
			plain->scores(f32(r), f32(c), n, y, &o);
			k->scores(f32(r), f32(c), n, y, &p);
			CU_ASSERT(o.finite && p.finite && o.max[0] == p.max[0] && o.max[1] == p.max[1] && o.sum == p.sum &&
			          o.squares == p.squares);
		}
	}
}

static void every_kind_of_processor_gives_the_same_digits_of_float64(void)
{
	static double    r[VN_BLOCK], c[VN_BLOCK];
	static vn_spread s, t;
	const double     unit[3] = { 0x1p-20, 0x1p-30, 0x1p-29 };
	for (int i = 0; i < VN_BLOCK; i++) {
		r[i] = ldexp(uniform(), i % 40 - 20);
		c[i] = i % 100 == 3 ? -1e5 * r[i] : r[i] * (1 + 1e-2 * uniform());
	}
	for (size_t n = 1; n <= VN_BLOCK; n = longer(n)) {
		const vn_metric_kernel *plain = &vn_metric_kernel_plain, *k;
		for (int i = 0; (k = vn_metric_kernel_get(i)); i++) {
			vn_block_sums a, b;
			double        p[2] = { 0, 0 }, q[2] = { 0, 0 };
			plain->wide_sums(r, c, n, unit, &a);
			k->wide_sums(r, c, n, unit, &b);
			CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof a), 0);
			CU_ASSERT_TRUE(plain->wide_sizes(r, c, n, p));
			CU_ASSERT_TRUE(k->wide_sizes(r, c, n, q));
			CU_ASSERT_EQUAL(memcmp(p, q, sizeof p), 0);
			memset(&s, 0, sizeof s);
			memset(&t, 0, sizeof t);
			plain->wide_rel(r, c, n, (vn_wide_scale) { 0.01, 0x1p100, 0.5 }, &s);
			k->wide_rel(r, c, n, (vn_wide_scale) { 0.01, 0x1p100, 0.5 }, &t);
			for (int grid = 0; grid < VN_N_DTYPES; grid++) {
				plain->wide_ulps(r, c, n, (vn_dtype)grid, &s);
				k->wide_ulps(r, c, n, (vn_dtype)grid, &t);
			}
			CU_ASSERT_EQUAL(memcmp(&s, &t, sizeof s), 0);
		}
	}
	for (int i = 0; i < 30; i++) { /* wherever it is, and of whatever kind */
		static const double     none[] = { (double)NAN, (double)INFINITY, -(double)INFINITY };
		const vn_metric_kernel *k;
		double                  was = r[i], max[2] = { 7, 8 };
		r[i] = none[i % 3];
		for (int j = 0; (k = vn_metric_kernel_get(j)); j++) {
			CU_ASSERT_FALSE(k->wide_sizes(r, c, 30, max));
			CU_ASSERT_FALSE(k->wide_sizes(c, r, 30, max));
		}
		CU_ASSERT(max[0] == 7.0 && max[1] == 8.0);
		r[i] = was;
	}
}

static void every_kind_of_processor_loads_the_numbers_that_the_bits_mean(void)
{
	enum { ALL = 65536 };
	static uint16_t         h[ALL];
	static float            want[ALL], got[ALL];
	const vn_metric_kernel *k;
	for (int i = 0; i < ALL; i++)
		h[i] = (uint16_t)i;
	for (int i = 0; (k = vn_metric_kernel_get(i)); i++)
		for (size_t d = 0; d < N_NARROW; d++) {
			const size_t n = sizeof h / vn_dtype_size(narrow[d]) < ALL ? sizeof h / vn_dtype_size(narrow[d]) : ALL;
			vn_to_f32(want, h, narrow[d], n);
			k->load(got, h, narrow[d], n);
			for (size_t j = 0; j < n; j++) /* a NaN is one, whatever its payload */
				if (memcmp(&want[j], &got[j], sizeof *got) != 0 && !(isnan(want[j]) && isnan(got[j])))
					CU_FAIL("another number");
			for (size_t m = 0; m < 20; m++) {
				memset(got, 0xff, 21 * sizeof *got);
				k->load(got, (const char *)h + 8, narrow[d], m);
				CU_ASSERT_EQUAL(memcmp(got, want + 8 / vn_dtype_size(narrow[d]), m * sizeof *got), 0);
				CU_ASSERT(isnan(got[m]));
			}
		}
}

static void what_is_in_the_file_gives_the_digits_of_what_is_loaded_from_it(void)
{
	static const vn_dtype   direct[] = { VN_F32, VN_F16, VN_BF16 };
	static float            raw[2][VN_BLOCK], x[2][VN_BLOCK], y[2][VN_BLOCK];
	const vn_metric_kernel *k;
	for (int i = 0; i < VN_BLOCK; i++) {
		y[0][i] = (float)ldexp(uniform(), i % 20 - 10);
		y[1][i] = y[0][i] * (1 + (float)(1e-2 * uniform()));
	}
	for (int pair = 0; pair < 9; pair++) {
		const vn_dtype d[2] = { direct[pair / 3], direct[pair % 3] };
		const vn_dtype grid = vn_dtype_digits(d[0]) < vn_dtype_digits(d[1]) ? d[0] : d[1];
		for (int side = 0; side < 2; side++) {
			vn_from_f32(raw[side], d[side], y[side], VN_BLOCK);
			vn_to_f32(x[side], raw[side], d[side], VN_BLOCK);
		}
		for (int i = 0; (k = vn_metric_kernel_get(i)); i++)
			for (size_t n = 1; n <= VN_BLOCK; n = longer(n)) {
				static vn_spread s, t;
				vn_block_sums    a, b;
				k->sums(f32(x[0]), f32(x[1]), n, &a);
				k->sums((vn_side) { raw[0], d[0] }, (vn_side) { raw[1], d[1] }, n, &b);
				CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof a), 0);
				memset(&s, 0, sizeof s);
				memset(&t, 0, sizeof t);
				k->spread(f32(x[0]), f32(x[1]), n, 0.01, grid, &s);
				k->spread((vn_side) { raw[0], d[0] }, (vn_side) { raw[1], d[1] }, n, 0.01, grid, &t);
				CU_ASSERT_EQUAL(memcmp(&s, &t, sizeof s), 0);
			}
	}
}

/* The place of x among the finite numbers of a format, by its conversion. */
static int64_t place_of_number(float x, vn_dtype grid)
{
	uint32_t       u = 0;
	const uint32_t top = 1u << (8 * vn_dtype_size(grid) - 1);
	vn_from_f32(&u, grid, &x, 1);
	return u & top ? -(int64_t)(u & (top - 1)) : (int64_t)u;
}

static void distances_are_between_the_codes_of_the_grid(void)
{
	enum { N = 200000 };
	static vn_spread s;
	for (size_t g = 0; g < N_NARROW; g++)
		for (int i = 0; i < N; i += 8) {
			float   r[8], c[8];
			int64_t most = 0, seen[8];
			for (int j = 0; j < 8; j++) {
				r[j] = (float)ldexp(uniform(), (i + j) % 60 - 30); /* beyond f8 and f16 at both ends */
				c[j] = j % 2 ? (float)ldexp(uniform(), (i + 3 * j) % 60 - 30) : r[j] * (1 + (float)(0.2 * uniform()));
				const int64_t a = place_of_number(r[j], narrow[g]), b = place_of_number(c[j], narrow[g]);
				seen[j] = a > b ? a - b : b - a;
				most = seen[j] > most ? seen[j] : most;
			}
			memset(&s, 0, sizeof s);
			if (i % 16) {
				vn_metric_kernel_best()->spread(f32(r), f32(c), 8, 1.0, narrow[g], &s);
			} else { /* the same of doubles */
				double x[8], y[8];
				vn_to_f64(x, r, VN_F32, 8);
				vn_to_f64(y, c, VN_F32, 8);
				vn_metric_kernel_best()->wide_ulps(x, y, 8, narrow[g], &s);
			}
			if (s.max_ulp != (uint64_t)most)
				CU_FAIL("another distance");
			for (int j = 0; j < 8; j++)
				if (s.count[j % VN_ULP_TABLES][ulp_bucket((uint64_t)seen[j])] == 0)
					CU_FAIL("another bucket");
		}
}

static void every_element_of_a_block_is_counted_once(void)
{
	static float r[VN_BLOCK], c[VN_BLOCK];
	for (int i = 0; i < VN_BLOCK; i++) {
		r[i] = (float)uniform();
		c[i] = r[i] * (1 + (float)ldexp(uniform(), -(i % 24)));
	}
	for (size_t n = 1; n <= VN_BLOCK; n = longer(n)) {
		static vn_spread s;
		uint32_t         want[VN_ULP_BUCKETS] = { 0 };
		for (size_t i = 0; i < n; i++) {
			const int64_t d = place_of_number(r[i], VN_F32) - place_of_number(c[i], VN_F32);
			want[ulp_bucket((uint64_t)(d < 0 ? -d : d))]++;
		}
		memset(&s, 0, sizeof s);
		vn_metric_kernel_best()->spread(f32(r), f32(c), n, 1.0, VN_F32, &s);
		for (int b = 0; b < VN_ULP_BUCKETS; b++) {
			uint32_t sum = 0;
			for (int t = 0; t < VN_ULP_TABLES; t++)
				sum += s.count[t][b];
			if (sum != want[b])
				CU_FAIL("counted otherwise");
		}
	}
}

static void the_exponential_is_as_good_as_the_library_s(void)
{
	for (int i = 0; i < 20000; i++) {
		const double x = -350 + 350 * uniform(), zero = 0;
		vn_soft      s = { 0 };
		vn_metric_kernel_best()->soft(f64(&x), f64(&zero), 1, &s);
		if (!(fabs(s.zr - exp(x)) <= 4e-16 * exp(x)))
			CU_FAIL("e^x is off");
	}
}

/* Two runs of rows of ROW bytes, one after the other; a row is fetched for each
 * that is measured. */
static void a_short_run_does_not_leave_too_little_fetched(void)
{
	enum { SLICE = 1 << 16, ROW = SLICE / 2 };
	static unsigned char room[4 * SLICE];
	const vn_ahead_run   none = { NULL, NULL }, second = { room + SLICE, room + 2 * SLICE };
	const vn_ahead_run   third = { room + 2 * SLICE, room + 3 * SLICE };
	for (int fetched = 1; fetched < SLICE; fetched *= 2) { /* of the second, while a short first was measured */
		const vn_ahead_run first = { room, room + fetched };
		vn_ahead           a = { 0 };
		vn_ahead_begin(&a, 0, first, SLICE, ROW, second);
		CU_ASSERT_PTR_EQUAL(vn_ahead_next(&a, 0, (size_t)fetched), second.at);
		vn_ahead_begin(&a, 0, second, SLICE, ROW, third);
		CU_ASSERT_PTR_EQUAL(vn_ahead_next(&a, 0, ROW), fetched < ROW ? third.at : second.at + fetched);
	}
	vn_ahead a = { 0 };
	vn_ahead_begin(&a, 0, second, SLICE, ROW, none);
	CU_ASSERT_PTR_NULL(vn_ahead_next(&a, 0, ROW)); /* nobody fetched it, and nothing is behind it */
}

static void a_stretch_is_over_at_its_last_unit_once_all_have_ended(void)
{
	_Atomic int64_t ended[3] = { 0 };
	vn_stretches    s = { .all = 8, .units = 3, .count = 3, .ended = ended }, none = { 0 };
	int64_t         from, to;
	for (int64_t unit = 7; unit >= 0; unit--) {
		CU_ASSERT_FALSE(vn_stretch_over(&s, 5, &from, &to) && unit >= 3);
		CU_ASSERT_EQUAL(vn_stretch_ends(&s, unit, &from, &to), unit % 3 == 0);
	}
	for (int64_t unit = 0; unit < 8; unit++)
		CU_ASSERT_EQUAL(vn_stretch_over(&s, unit, &from, &to), unit == 2 || unit == 5 || unit == 7);
	CU_ASSERT(from == 6 && to == 8);
	CU_ASSERT_FALSE(vn_stretch_over(&none, 0, &from, &to));
}

/* One thread measures the last unit of the first stretch, has taken the first one of the second,
 * and is slow. The other measures all units up to the end of the third. */
static void a_slow_thread_does_not_raise_what_stays_mapped(void)
{
	enum { UNITS = 512, UNIT = 1 << 18 };
	const vn_pair   p = { .mapped = true, .n = (int64_t)UNITS * UNIT, .dtype = { VN_F32, VN_F32 } };
	_Atomic int64_t ended[UNITS] = { 0 };
	vn_stretches    s = vn_stretches_of(&p, UNITS, UNIT, 2);
	int64_t         mapped = 0, most = 0, from, to;
	CU_ASSERT_FATAL(s.units > 1 && s.count >= 3);
	s.ended = ended;
	for (int64_t unit = 0; unit < 3 * s.units; unit++) {
		most = ++mapped > most ? mapped : most;
		if (unit != s.units - 1 && unit != s.units && vn_stretch_ends(&s, unit, &from, &to))
			mapped -= to - from;
	}
	CU_ASSERT_EQUAL(mapped, 2 * s.units); /* the third stretch was given back */
	CU_ASSERT(most * UNIT * 8 <= 64 << 20);
	for (int64_t unit = s.units - 1; unit <= s.units; unit++)
		mapped -= vn_stretch_ends(&s, unit, &from, &to) ? to - from : 0;
	CU_ASSERT_EQUAL(mapped, 0);
}

static void the_median_is_that_of_sorted_numbers(void)
{
	double x[300], sorted[300];
	for (int n = 1; n <= 300; n++) {
		for (int i = 0; i < n; i++)
			sorted[i] = x[i] = i % 7 == 3 ? 0.0 : ldexp(uniform() - 0.5, i % 60 - 30);
		qsort(sorted, (size_t)n, sizeof *sorted, vn_ascending);
		if (vn_median_of(x, n) != sorted[vn_quantile_index(n, 0.5)])
			CU_FAIL("another median");
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(buckets_are_exact_to_15_and_an_eighth_of_an_octave_above),
		TEST(every_kind_of_processor_gives_the_same_digits),
		TEST(every_kind_of_processor_gives_the_same_digits_of_float64),
		TEST(every_kind_of_processor_loads_the_numbers_that_the_bits_mean),
		TEST(distances_are_between_the_codes_of_the_grid),
		TEST(every_element_of_a_block_is_counted_once),
		TEST(what_is_in_the_file_gives_the_digits_of_what_is_loaded_from_it),
		TEST(the_exponential_is_as_good_as_the_library_s),
		TEST(a_kernel_is_chosen_by_name_or_not_at_all),
		TEST(a_short_run_does_not_leave_too_little_fetched),
		TEST(a_stretch_is_over_at_its_last_unit_once_all_have_ended),
		TEST(a_slow_thread_does_not_raise_what_stays_mapped),
		TEST(the_median_is_that_of_sorted_numbers),
		CU_TEST_INFO_NULL,
	};
	return run_suite("kernel", tests);
}
