/* test_f8.c: the formats of 8 bits and int32 (dtype.c), against their definitions.
 *
 * The OCP 8-bit specification: e4m3 has a sign, 4 bits of exponent with bias 7, 3 of fraction and
 * no infinity; e5m2 has 5 with bias 15, 2 and IEEE's infinities. Rounding beyond the largest number
 * follows from the table of values: the nearest number, or of two equally near ones that with an
 * even code; above the last midpoint infinity or, in a format without infinity, NaN. */
#include "libref/base/dtype.h"
#include "tests/support/suite.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef struct format {
	vn_dtype dtype;
	int      fraction, bias, top; /* top: the largest finite code */
} format;

static const format formats[] = { { VN_F8_E4M3, 3, 7, 0x7e }, { VN_F8_E5M2, 2, 15, 0x7b } };

static double value(const format *f, int code)
{
	const int    size = code & 0x7f, e = size >> f->fraction, m = size & ((1 << f->fraction) - 1);
	const double sign = code & 0x80 ? -1.0 : 1.0;

	if (size > f->top)
		return f->dtype == VN_F8_E5M2 && m == 0 ? sign * (double)INFINITY : (double)NAN;
	return sign * ldexp(e ? m + (1 << f->fraction) : m, (e ? e : 1) - f->bias - f->fraction);
}

/* By looking through all numbers. */
static int nearest(const format *f, double x)
{
	const int    sign = signbit(x) ? 0x80 : 0;
	const double past = value(f, f->top) + vn_dtype_ulp(f->dtype, value(f, f->top)) / 2;
	int          best = 0;

	if (isnan(x))
		return sign | 0x7f;
	x = fabs(x);
	if (x > past ||
	    (x == past && f->top % 2)) /* the even neighbour of an odd last number is the one that is not there */
		return sign | (f->top + 1);
	for (int c = 1; c <= f->top; c++) {
		const double d = fabs(value(f, c) - x), was = fabs(value(f, best) - x);
		if (d < was || (d == was && c % 2 == 0))
			best = c;
	}
	return sign | best;
}

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static void every_code_has_the_value_of_its_definition(void)
{
	for (size_t k = 0; k < 2; k++) {
		const format *f = &formats[k];
		unsigned char code[256];
		float         x[256];
		double        y[256];
		for (int c = 0; c < 256; c++)
			code[c] = (unsigned char)c;
		vn_to_f32(x, code, f->dtype, 256);
		vn_to_f64(y, code, f->dtype, 256);
		for (int c = 0; c < 256; c++) {
			const float one = f->dtype == VN_F8_E4M3 ? vn_f8_e4m3_to_f32((uint8_t)c) : vn_f8_e5m2_to_f32((uint8_t)c);
			CU_ASSERT(same((double)x[c], value(f, c)));
			CU_ASSERT(same(y[c], value(f, c)));
			CU_ASSERT(same((double)one, value(f, c)));
		}
		CU_ASSERT_EQUAL(value(f, f->top), vn_dtype_max(f->dtype));
		CU_ASSERT_EQUAL(value(f, 1), vn_dtype_ulp(f->dtype, 0.0));
		for (int c = 0; c < f->top; c++)
			CU_ASSERT_EQUAL(value(f, c + 1) - value(f, c), vn_dtype_ulp(f->dtype, value(f, c)));
	}
}

static void every_code_survives_the_way_to_float_and_back(void)
{
	for (size_t k = 0; k < 2; k++)
		for (int c = 0; c < 256; c++) {
			const unsigned char code = (unsigned char)c;
			unsigned char       back = 0, wide = 0;
			float               x;
			double              y;
			vn_to_f32(&x, &code, formats[k].dtype, 1);
			vn_to_f64(&y, &code, formats[k].dtype, 1);
			vn_from_f32(&back, formats[k].dtype, &x, 1);
			vn_from_f64(&wide, formats[k].dtype, &y, 1);
			const int want = isnan(x) ? code | 0x7f : code; /* NaN has one code a sign */
			CU_ASSERT_EQUAL(back, want);
			CU_ASSERT_EQUAL(wide, want);
		}
}

/* The middles of neighbours, and what is just off them: as doubles by less than a float can say. */
static void numbers_round_once_to_the_nearest_and_ties_to_even(void)
{
	for (size_t k = 0; k < 2; k++) {
		const format *f = &formats[k];
		for (int c = 0; c <= f->top; c++) {
			const double low = value(f, c), next = c < f->top ? value(f, c + 1) : low + vn_dtype_ulp(f->dtype, low);
			const double middle = (low + next) / 2, off[] = { 0, 0x1p-23, -0x1p-23, 0x1p-50, -0x1p-50 };
			for (int i = 0; i < 10; i++) {
				const double  x = (i % 2 ? -1 : 1) * middle * (1 + off[i / 2]);
				const float   y = (float)x;
				unsigned char code;
				vn_from_f64(&code, f->dtype, &x, 1);
				CU_ASSERT_EQUAL(code, nearest(f, x));
				vn_from_f32(&code, f->dtype, &y, 1);
				CU_ASSERT_EQUAL(code, nearest(f, (double)y));
			}
		}
	}
}

static void floats_of_every_size_round_to_the_nearest(void)
{
	uint32_t u = 1;
	int      wrong = 0;
	for (int i = 0; i < 100000; i++) {
		float x;
		u = u * 1664525u + 1013904223u;
		const uint32_t w = u ^ u >> 15, near = (w & 0x80ffffffu) | (104u + (w >> 24) % 42u) << 23; /* 2^-23 to 2^18 */
		memcpy(&x, i % 4 ? &near : &w, sizeof x);
		for (size_t k = 0; k < 2; k++) {
			unsigned char code;
			vn_from_f32(&code, formats[k].dtype, &x, 1);
			wrong += code != nearest(&formats[k], (double)x);
			float y = x;
			vn_round_f32(&y, formats[k].dtype, 1);
			wrong += !same((double)y, value(&formats[k], code));
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void codes_are_those_of_pytorch_and_beyond_the_range_there_is_no_number(void)
{
	/* float8_e4m3fn and float8_e5m2 of PyTorch 2.13: torch.tensor(x).to(dtype).view(torch.uint8).
	 * It saturates what is beyond e4m3 (0x7e); the specification allows both. */
	static const struct {
		double x;
		int    e4m3, e5m2;
	} row[] = {
		{ 0.0, 0x00, 0x00 },     { -0.0, 0x80, 0x80 },      { 1.0, 0x38, 0x3c },     { 448.0, 0x7e, 0x5f },
		{ 464.0, 0x7e, 0x5f },   { 465.0, 0x7f, 0x5f },     { 480.0, 0x7f, 0x60 },   { -1e6, 0xff, 0xfc },
		{ 57344.0, 0x7f, 0x7b }, { 61439.0, 0x7f, 0x7b },   { 61440.0, 0x7f, 0x7c }, { 0x1p-9, 0x01, 0x18 },
		{ 0x1p-10, 0x00, 0x14 }, { 0x1.8p-10, 0x01, 0x16 }, { 0x1p-16, 0x00, 0x01 }, { 0x1p-17, 0x00, 0x00 },
		{ 0.1, 0x1d, 0x2e },
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		unsigned char code;
		vn_from_f64(&code, VN_F8_E4M3, &row[i].x, 1);
		CU_ASSERT_EQUAL(code, row[i].e4m3);
		vn_from_f64(&code, VN_F8_E5M2, &row[i].x, 1);
		CU_ASSERT_EQUAL(code, row[i].e5m2);
	}
}

static void whole_numbers_are_exact_as_doubles_and_have_ends(void)
{
	const int32_t whole[] = { 0, 1, -1, 16777217, INT32_MAX, INT32_MIN };
	const double  x[] = { 0.5,          1.5,   -2.5,          16777217,          2147483647.4,
		                  2147483648.0, 1e300, -2147483649.0, -(double)INFINITY, (double)NAN };
	const int32_t want[] = { 0, 2, -2, 16777217, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MIN, INT32_MIN, INT32_MIN };
	int32_t       got[10];
	double        wide[6];
	float         y[6];

	vn_to_f64(wide, whole, VN_I32, 6);
	vn_to_f32(y, whole, VN_I32, 6);
	for (int i = 0; i < 6; i++) {
		CU_ASSERT_EQUAL(wide[i], whole[i]);
		CU_ASSERT_EQUAL(y[i], (float)whole[i]);
	}
	vn_from_f64(got, VN_I32, x, 10);
	CU_ASSERT_EQUAL(memcmp(got, want, sizeof want), 0);
	vn_from_f32(got, VN_I32, y, 6);
	CU_ASSERT_EQUAL(got[3], 16777216);
	CU_ASSERT_EQUAL(got[4], INT32_MAX);
	CU_ASSERT_EQUAL(vn_dtype_ulp(VN_I32, 5.0), 1.0);
	CU_ASSERT_EQUAL(vn_dtype_ulp(VN_I32, 2e9), 1.0);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(every_code_has_the_value_of_its_definition),
		TEST(every_code_survives_the_way_to_float_and_back),
		TEST(numbers_round_once_to_the_nearest_and_ties_to_even),
		TEST(floats_of_every_size_round_to_the_nearest),
		TEST(codes_are_those_of_pytorch_and_beyond_the_range_there_is_no_number),
		TEST(whole_numbers_are_exact_as_doubles_and_have_ends),
		CU_TEST_INFO_NULL,
	};
	return run_suite("f8", tests);
}
