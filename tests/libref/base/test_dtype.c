/* test_dtype.c: the number formats, against their definitions.
 *
 * A half is (-1)^s m 2^e by IEEE 754; the tests compute it so, in double, and
 * round by hand. Where the compiler has a half type of its own it is asked too. */
#include "libref/base/dtype.h"
#include "tests/support/float_bits.h"
#include "tests/support/suite.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__FLT16_MAX__) && defined(__x86_64__)
#define HAVE_FLOAT16 1
__extension__ typedef _Float16 own_half;
#endif

enum { ALL = 65536, MANY = 1 << 20 };

/* The value of a half, from the definition. */
static double half_value(uint16_t h)
{
	const int    e = h >> 10 & 31, m = h & 1023;
	const double s = h & 0x8000 ? -1.0 : 1.0;

	if (e == 31)
		return m ? (double)NAN : s * (double)INFINITY;
	return s * (e ? ldexp(1024 + m, e - 25) : ldexp(m, -24));
}

/* The number nearest to x, ties to even, in a format with `digits` after the leading bit, smallest
 * normal 2^low, largest finite number `max`. Exact in double for 16-bit formats. */
static double round_by_hand(double x, int digits, int low, double max)
{
	int    e;
	double step, y;

	if (isnan(x) || isinf(x) || x == 0.0)
		return x;
	frexp(x, &e);
	e = e - 1 < low ? low : e - 1;
	step = ldexp(1.0, e - digits);
	y = nearbyint(x / step) * step; /* a power of two: division is exact unless below 2^-1022 */
	return fabs(y) > max ? copysign((double)INFINITY, x) : copysign(y, x);
}

static double as_half(double x)
{
	return round_by_hand(x, 10, -14, 65504.0);
}
static double as_bhalf(double x)
{
	return round_by_hand(x, 7, -126, 0x1.fep127);
}

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* Floats of every kind: random bits, and random bits around the halves. */
static float *many_floats(void)
{
	float   *x = malloc(MANY * sizeof *x);
	uint32_t u = 1;

	for (int i = 0; i < MANY; i++) {
		u = u * 1664525u + 1013904223u;
		const uint32_t w = u ^ u >> 15;
		if (i % 2)
			x[i] = from_bits(w);
		else /* exponents 2^-27 to 2^16, a few low bits of the fraction */
			x[i] = from_bits((w & 0x80000000u) | (100u + (w >> 8) % 44u) << 23 | (w & 0x7fe000u) | (w >> 3 & 1u) << 12 |
			                 (uint32_t)(w % 5 == 0));
	}
	return x;
}

static void the_table_says_what_the_formats_are(void)
{
	const size_t size[VN_N_DTYPES] = { 2, 2, 4, 8, 1, 1, 4 };
	const int    digits[VN_N_DTYPES] = { 10, 7, FLT_MANT_DIG - 1, DBL_MANT_DIG - 1, 3, 2, 31 };
	const double max[VN_N_DTYPES] = { 65504.0,  (double)from_bits(0x7f7f0000u), (double)FLT_MAX, DBL_MAX, 448, 57344,
		                              INT32_MAX };
	const char  *name[VN_N_DTYPES] = { "f16", "bf16", "f32", "f64", "f8_e4m3", "f8_e5m2", "i32" };

	for (int i = 0; i < VN_N_DTYPES; i++) {
		CU_ASSERT_EQUAL(vn_dtype_size((vn_dtype)i), size[i]);
		CU_ASSERT_EQUAL(vn_dtype_digits((vn_dtype)i), digits[i]);
		CU_ASSERT_EQUAL(vn_dtype_max((vn_dtype)i), max[i]);
		CU_ASSERT_STRING_EQUAL(vn_dtype_name((vn_dtype)i), name[i]);
	}
}

static void names_are_found_in_either_case_and_nothing_else_is(void)
{
	vn_dtype d = VN_F64;

	CU_ASSERT_TRUE(vn_dtype_from_name("BF16", &d));
	CU_ASSERT_EQUAL(d, VN_BF16);
	CU_ASSERT_TRUE(vn_dtype_from_name("f16", &d));
	CU_ASSERT_EQUAL(d, VN_F16);
	CU_ASSERT_FALSE(vn_dtype_from_name("f8", &d));
	CU_ASSERT_FALSE(vn_dtype_from_name("", &d));
	CU_ASSERT_FALSE(vn_dtype_from_name("f16 ", &d));
	CU_ASSERT_EQUAL(d, VN_F16);
}

static void every_half_has_the_value_of_its_definition(void)
{
	int wrong = 0;

	for (int i = 0; i < ALL; i++)
		wrong += !same((double)vn_f16_to_f32((uint16_t)i), half_value((uint16_t)i));
	CU_ASSERT_EQUAL(wrong, 0);
}

static void every_half_survives_the_way_to_float_and_back(void)
{
	int wrong = 0;

	for (int i = 0; i < ALL; i++) {
		const uint16_t h = (uint16_t)i, back = vn_f32_to_f16(vn_f16_to_f32(h));
		/* a signalling NaN comes back quiet, with the rest of its payload */
		const uint16_t want = (h & 0x7fff) > 0x7c00 ? (uint16_t)(h | 0x200) : h;
		wrong += back != want;
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void every_bfloat_is_the_upper_half_of_a_float_and_survives(void)
{
	int wrong = 0;

	for (int i = 0; i < ALL; i++) {
		const uint16_t h = (uint16_t)i;
		const bool     nan = (h & 0x7fff) > 0x7f80;
		const float    x = vn_bf16_to_f32(h);
		const uint32_t up = (uint32_t)h << 16;
		if (nan)
			wrong += !isnan(x) || !isnan(vn_bf16_to_f32(vn_f32_to_bf16(x)));
		else
			wrong += to_bits(x) != up || vn_f32_to_bf16(x) != h;
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void a_million_floats_round_to_the_nearest_half_and_bfloat(void)
{
	float *x = many_floats();
	int    wrong = 0;

	for (int i = 0; i < MANY; i++) {
		wrong += !same((double)vn_f16_to_f32(vn_f32_to_f16(x[i])), as_half((double)x[i]));
		wrong += !same((double)vn_bf16_to_f32(vn_f32_to_bf16(x[i])), as_bhalf((double)x[i]));
	}
	CU_ASSERT_EQUAL(wrong, 0);
	free(x);
}

/* The arrays go through the processor's instructions where it has them. */
static void arrays_give_the_bits_of_single_numbers(void)
{
	float    *x = many_floats(), *y = malloc(MANY * sizeof *y);
	uint16_t *h = malloc(MANY * sizeof *h), *b = malloc(MANY * sizeof *b);
	int       wrong = 0;

	vn_from_f32(h, VN_F16, x, MANY);
	vn_from_f32(b, VN_BF16, x, MANY);
	for (int i = 0; i < MANY; i++) {
		wrong += h[i] != vn_f32_to_f16(x[i]);
		wrong += b[i] != vn_f32_to_bf16(x[i]);
	}
	CU_ASSERT_EQUAL(wrong, 0);

	memcpy(y, x, MANY * sizeof *y);
	vn_round_f32(y, VN_F16, MANY);
	for (int i = 0; i < MANY; i++)
		wrong += to_bits(y[i]) != to_bits(vn_f16_to_f32(h[i]));
	memcpy(y, x, MANY * sizeof *y);
	vn_round_f32(y, VN_BF16, MANY);
	for (int i = 0; i < MANY; i++)
		wrong += to_bits(y[i]) != to_bits(vn_bf16_to_f32(b[i]));
	memcpy(y, x, MANY * sizeof *y);
	vn_round_f32(y, VN_F32, MANY);
	CU_ASSERT_EQUAL(memcmp(x, y, MANY * sizeof *y), 0);
	CU_ASSERT_EQUAL(wrong, 0);

	for (int i = 0; i < ALL; i++)
		h[i] = (uint16_t)i;
	vn_to_f32(y, h, VN_F16, ALL);
	for (int i = 0; i < ALL; i++)
		wrong += to_bits(y[i]) != to_bits(vn_f16_to_f32(h[i]));
	vn_to_f32(y, h, VN_BF16, ALL);
	for (int i = 0; i < ALL; i++)
		wrong += to_bits(y[i]) != (uint32_t)h[i] << 16;
	CU_ASSERT_EQUAL(wrong, 0);
	free(x);
	free(y);
	free(h);
	free(b);
}

/* Lengths around the eight lanes, from addresses that are not aligned. */
static void short_and_unaligned_arrays_are_converted_whole_and_no_further(void)
{
	unsigned char raw[64 * 8 + 1];
	float         y[66], want[66];
	double        z[66];

	for (size_t d = 0; d < VN_N_ENGINE_DTYPES; d++)
		for (size_t n = 0; n <= 40; n++) {
			for (size_t i = 0; i < 64; i++)
				want[i] = (float)i * 0.25f - 3.0f; /* exact in every format */
			vn_from_f32(raw + 1, (vn_dtype)d, want, 64);
			for (size_t i = 0; i < 66; i++)
				z[i] = (double)(y[i] = -1000.0f);
			vn_to_f32(y, raw + 1, (vn_dtype)d, n);
			vn_to_f64(z, raw + 1, (vn_dtype)d, n);
			for (size_t i = 0; i < 66; i++) {
				CU_ASSERT_EQUAL(y[i], i < n ? want[i] : -1000.0f);
				CU_ASSERT_EQUAL(z[i], i < n ? (double)want[i] : -1000.0);
			}
			const size_t size = vn_dtype_size((vn_dtype)d);
			memset(raw, 0xa5, sizeof raw);
			vn_from_f32(raw + 1, (vn_dtype)d, want, n);
			CU_ASSERT_EQUAL(raw[0], 0xa5);
			CU_ASSERT_EQUAL(raw[1 + n * size], 0xa5);
		}
}

static void the_compilers_own_half_agrees(void)
{
#ifdef HAVE_FLOAT16
	float *x = many_floats();
	int    wrong = 0;

	for (int i = 0; i < MANY; i++) {
		const double   wide = (double)x[i] * (1.0 + 0x1p-40);
		const own_half c = (own_half)x[i], d = (own_half)wide;
		uint16_t       h, k;

		memcpy(&h, &c, sizeof h);
		wrong += !isnan(x[i]) && h != vn_f32_to_f16(x[i]);
		vn_from_f64(&k, VN_F16, &wide, 1);
		memcpy(&h, &d, sizeof h);
		wrong += !isnan(x[i]) && h != k;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	free(x);
#else
	CU_PASS("this compiler has no _Float16");
#endif
}

/* A double just off the middle of two halves: a float in between lands on the
 * middle, and the second rounding then takes the even one, on the wrong side. */
static void a_double_is_rounded_once(void)
{
	static double   x[6 * ALL];
	static uint16_t h[6 * ALL];
	size_t          n = 0;
	int             wrong = 0, traps = 0;

	for (int i = 0; i < 0x7c00; i++) {
		const double a = half_value((uint16_t)i), b = i == 0x7bff ? 65536.0 : half_value((uint16_t)(i + 1));
		const double middle = (a + b) / 2, off = ldexp(middle, -45);
		x[n++] = middle;
		x[n++] = middle + off;
		x[n++] = middle - off;
		x[n++] = -middle - off;
		x[n++] = -middle + off;
	}
	vn_from_f64(h, VN_F16, x, n);
	for (size_t i = 0; i < n; i++) {
		wrong += !same(half_value(h[i]), as_half(x[i]));
		traps += vn_f32_to_f16((float)x[i]) != h[i];
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(traps > 60000); /* two roundings would have missed half of them */

	n = 0;
	for (uint32_t i = 0; i < 0x7f80; i++) {
		const double a = (double)from_bits(i << 16), b = i == 0x7f7f ? 0x1p128 : (double)from_bits((i + 1) << 16);
		const double middle = (a + b) / 2, off = ldexp(middle, -45);
		x[n++] = middle;
		x[n++] = middle + off;
		x[n++] = middle - off;
		x[n++] = -middle - off;
		x[n++] = -middle + off;
	}
	vn_from_f64(h, VN_BF16, x, n);
	for (size_t i = 0; i < n; i++)
		wrong += !same((double)vn_bf16_to_f32(h[i]), as_bhalf(x[i]));
	CU_ASSERT_EQUAL(wrong, 0);
}

static void the_ends_of_the_range_round_as_the_format_says(void)
{
	/* clang-format off */
	const struct { double x; uint16_t f16, bf16; } row[] = {
		{ 0.0, 0x0000, 0x0000 }, { -0.0, 0x8000, 0x8000 },
		{ 65504.0, 0x7bff, 0x4780 }, { 65519.99, 0x7bff, 0x4780 }, { 65520.0, 0x7c00, 0x4780 },
		  { -65520.0, 0xfc00, 0xc780 },
		{ 0x1p-14, 0x0400, 0x3880 }, { 0x1p-24, 0x0001, 0x3380 }, { 0x1p-25, 0x0000, 0x3300 },
		{ 0x1.000001p-25, 0x0001, 0x3300 }, { 0x1.8p-24, 0x0002, 0x33c0 }, { 0x1.ffcp-15, 0x0400, 0x3880 },
		{ 1e300, 0x7c00, 0x7f80 }, { -1e300, 0xfc00, 0xff80 }, { 1e-300, 0x0000, 0x0000 }, { -1e-300, 0x8000, 0x8000 },
		{ 0x1.fep127, 0x7c00, 0x7f7f }, { 0x1.fefffffffffffp127, 0x7c00, 0x7f7f }, { 0x1.ffp127, 0x7c00, 0x7f80 },
		{ (double)INFINITY, 0x7c00, 0x7f80 }, { -(double)INFINITY, 0xfc00, 0xff80 },
		{ 1.0 / 3.0, 0x3555, 0x3eab }, { 0.1, 0x2e66, 0x3dcd }, /* bf16 truncated: 3eaa, 3dcc */
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		uint16_t h;
		vn_from_f64(&h, VN_F16, &row[i].x, 1);
		CU_ASSERT_EQUAL(h, row[i].f16);
		vn_from_f64(&h, VN_BF16, &row[i].x, 1);
		CU_ASSERT_EQUAL(h, row[i].bf16);
		if ((double)(float)row[i].x == row[i].x) {
			CU_ASSERT_EQUAL(vn_f32_to_f16((float)row[i].x), row[i].f16);
			CU_ASSERT_EQUAL(vn_f32_to_bf16((float)row[i].x), row[i].bf16);
		}
	}
}

static void a_nan_stays_one_in_every_format_and_both_lengths(void)
{
	float    x[9], y[9];
	double   z[9];
	uint16_t h[9];

	for (int i = 0; i < 9; i++) /* payloads that would vanish when cut: only low bits set */
		x[i] = from_bits(i % 2 ? 0x7f800001u : 0xff800001u);
	for (vn_dtype d = VN_F16; d <= VN_BF16; d = (vn_dtype)(d + 1)) {
		vn_from_f32(h, d, x, 9);
		vn_to_f32(y, h, d, 9);
		for (int i = 0; i < 9; i++)
			CU_ASSERT(isnan(y[i]));
		for (int i = 0; i < 9; i++)
			z[i] = (double)NAN;
		vn_from_f64(h, d, z, 9);
		vn_to_f64(z, h, d, 9);
		for (int i = 0; i < 9; i++)
			CU_ASSERT(isnan(z[i]));
	}
}

static void the_ulp_is_the_distance_to_the_next_number(void)
{
	int wrong = 0;

	for (int i = 0x0001; i < 0x7bff; i++)
		wrong += vn_dtype_ulp(VN_F16, half_value((uint16_t)i)) !=
		         half_value((uint16_t)(i + 1)) - half_value((uint16_t)i);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(vn_dtype_ulp(VN_F16, 1.0), 0x1p-10);
	CU_ASSERT_EQUAL(vn_dtype_ulp(VN_F16, -1.999), 0x1p-10);
	CU_ASSERT_EQUAL(vn_dtype_ulp(VN_F16, 0.0), 0x1p-24);
	CU_ASSERT_EQUAL(vn_dtype_ulp(VN_BF16, 1.0), 0x1p-7);
	CU_ASSERT_EQUAL(vn_dtype_ulp(VN_BF16, 0.0), 0x1p-133);
	CU_ASSERT_EQUAL(vn_dtype_ulp(VN_F32, 1.0), (double)FLT_EPSILON);
	CU_ASSERT_EQUAL(vn_dtype_ulp(VN_F32, 1e-45), 0x1p-149);
	CU_ASSERT_EQUAL(vn_dtype_ulp(VN_F64, 3.0), 2 * DBL_EPSILON);
	CU_ASSERT_EQUAL(vn_dtype_ulp(VN_F64, 0.0), 0x1p-1074);
	CU_ASSERT_EQUAL(vn_dtype_ulp(VN_F64, 5e-324), 0x1p-1074);
}

static void the_ulp_of_no_number_is_finite(void)
{
	for (int d = 0; d < VN_N_DTYPES; d++) {
		CU_ASSERT(isfinite(vn_dtype_ulp((vn_dtype)d, (double)NAN)));
		CU_ASSERT(isfinite(vn_dtype_ulp((vn_dtype)d, (double)INFINITY)));
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(the_table_says_what_the_formats_are),
		TEST(names_are_found_in_either_case_and_nothing_else_is),
		TEST(every_half_has_the_value_of_its_definition),
		TEST(every_half_survives_the_way_to_float_and_back),
		TEST(every_bfloat_is_the_upper_half_of_a_float_and_survives),
		TEST(a_million_floats_round_to_the_nearest_half_and_bfloat),
		TEST(arrays_give_the_bits_of_single_numbers),
		TEST(short_and_unaligned_arrays_are_converted_whole_and_no_further),
		TEST(the_compilers_own_half_agrees),
		TEST(a_double_is_rounded_once),
		TEST(the_ends_of_the_range_round_as_the_format_says),
		TEST(a_nan_stays_one_in_every_format_and_both_lengths),
		TEST(the_ulp_is_the_distance_to_the_next_number),
		TEST(the_ulp_of_no_number_is_finite),
		CU_TEST_INFO_NULL,
	};
	return run_suite("dtype", tests);
}
