/* test_ggml.c: ggml's rounding of a product's inputs, against ggml's own functions.
 *
 * The whole numbers and scales below are what quantize_row_q8_0, quantize_row_q8_1 and
 * quantize_row_q8_K of ggml 0.25.3 (x86-64 with AVX2, in llama-cpp-python 0.3.36) wrote for the
 * numbers that fill() makes, and halves from its table of gelu: called by hand, once. */
#include "libref/ops/ggml.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

enum { SMALL = 32, LARGE = 256 };

static const signed char small[2][SMALL] = {
	{ -123, -124, 11,  35,  105, -100, -1,  12, 25,  73,  -118, 63,  120,  -110, 51,  -10,
	  -27,  118,  -24, 116, 127, 42,   -20, 0,  -55, -20, 45,   -89, -106, 91,   -48, -127 },
	{ -10, -55, 19,  121, -127, 73, -52, -47, 119, 12, 44, 41, 32,  -89, 112, 70,
	  -11, 59,  -44, 56,  20,   69, -15, -77, -11, 45, 6,  98, -28, 112, 63,  -94 },
};
static const signed char large[LARGE] = {
	-47,  38,   36,   -74,  -75,  82,   97,   24,   -95, -57, -9,   64,   27,   -94, -80,  33,  -84, -49, -7,   -100,
	-33,  -107, 29,   -72,  -83,  103,  -30,  -28,  98,  -20, -99,  104,  57,   -71, -59,  31,  81,  55,  -97,  27,
	-70,  -55,  104,  -60,  -87,  -15,  73,   -102, 25,  75,  -45,  -82,  -127, 126, -40,  121, 38,  99,  -3,   -105,
	-123, 50,   41,   -109, -102, 80,   -57,  -26,  20,  40,  -121, -69,  -40,  13,  5,    3,   32,  37,  -113, 30,
	98,   -32,  -43,  13,   -89,  91,   94,   -26,  -19, -35, 12,   10,   -19,  35,  -34,  96,  48,  80,  -20,  127,
	102,  -95,  64,   -106, 103,  37,   -14,  125,  73,  90,  -69,  71,   124,  43,  -23,  31,  -46, -57, 97,   102,
	-28,  95,   27,   108,  58,   -69,  59,   -7,   46,  22,  -59,  -62,  95,   -38, -125, 103, 66,  29,  -93,  -110,
	21,   -23,  22,   71,   75,   -54,  -60,  -90,  48,  20,  27,   -119, 89,   -9,  -124, -57, 52,  45,  -47,  28,
	-85,  -5,   -85,  -36,  -63,  -54,  -114, 10,   -85, 125, -45,  114,  -93,  99,  -13,  -19, -96, 81,  -24,  -65,
	-102, 89,   81,   -17,  8,    42,   -25,  -3,   -49, -19, 54,   39,   -84,  83,  -57,  90,  -5,  33,  44,   109,
	80,   75,   -114, 54,   58,   -100, -77,  -92,  49,  86,  -95,  -28,  -109, 101, 88,   93,  22,  -5,  55,   -46,
	41,   -88,  18,   18,   34,   113,  10,   37,   39,  76,  -70,  -90,  82,   7,   41,   -52, 82,  -99, -64,  111,
	-84,  105,  7,    -18,  76,   -61,  13,   -79,  21,  -24, -80,  -31,  -112, 71,  22,   112,
};
static const uint16_t small_scale[2] = { 0x25f9, 0x0080 }, small_sum[2] = { 0xbe58, 0x1bfc };
static const float    large_scale = -0x1.01fa3ep-7f;

static void fill(float *x, int n)
{
	uint32_t s = 12345;
	for (int i = 0; i < n; i++) {
		s = 1664525u * s + 1013904223u;
		x[i] = (float)(s >> 8) * 0x1p-23f - 1.0f;
	}
	for (int i = 0; i < SMALL; i++) {
		x[i] *= 3.0f;
		x[SMALL + i] *= 1e-3f;
	}
}

static void blocks_of_32_are_those_of_ggml_to_the_bit(void)
{
	static const vn_dtype with[] = { VN_Q4_0, VN_Q4_1, VN_Q5_0, VN_Q5_1, VN_Q8_0 };

	for (size_t k = 0; k < sizeof with / sizeof *with; k++) {
		float x[2 * SMALL];
		fill(x, 2 * SMALL);
		vn_ggml_round(x, NULL, with[k], VN_GGML_DIVIDED, 2 * SMALL);
		for (int i = 0; i < 2 * SMALL; i++)
			CU_ASSERT_EQUAL(x[i], vn_f16_to_f32(small_scale[i / SMALL]) * (float)small[i / SMALL][i % SMALL]);
	}
}

static void sums_of_blocks_are_rounded_as_ggml_rounds_them(void)
{
	float x[2 * SMALL], more[2] = { 0 };

	CU_ASSERT_TRUE(vn_ggml_has_sums(VN_Q4_1) && vn_ggml_has_sums(VN_Q5_1) && !vn_ggml_has_sums(VN_Q8_0) &&
	               !vn_ggml_has_sums(VN_Q4_K));
	fill(x, 2 * SMALL);
	vn_ggml_round(x, more, VN_Q4_1, VN_GGML_DIVIDED, 2 * SMALL);
	for (int b = 0; b < 2; b++) {
		double sum = 0.0;
		for (int i = 0; i < SMALL; i++)
			sum += (double)x[b * SMALL + i];
		CU_ASSERT_DOUBLE_EQUAL(sum + (double)more[b], (double)vn_f16_to_f32(small_sum[b]), 1e-9);
	}
	CU_ASSERT_NOT_EQUAL(more[0], 0.0f);
}

static void blocks_of_256_are_those_of_ggml_to_the_bit(void)
{
	static const vn_dtype with[] = { VN_Q4_K, VN_Q5_K, VN_Q6_K };

	for (size_t k = 0; k < sizeof with / sizeof *with; k++) {
		float x[2 * SMALL + LARGE];
		fill(x, 2 * SMALL + LARGE);
		vn_ggml_round(x + 2 * SMALL, NULL, with[k], VN_GGML_DIVIDED, LARGE);
		for (int i = 0; i < LARGE; i++)
			CU_ASSERT_EQUAL(x[2 * SMALL + i], large_scale * (float)large[i]);
	}
}

/* 0x1.195d9ap+0 of a largest 0x1.27515p+1 is 60.500004 of its 127ths by x86's way,
 * and 60.5 by ARM's. */
static void the_way_to_the_scale_is_seen_in_a_last_digit(void)
{
	float divided[SMALL] = { 0x1.27515p+1f, 0x1.195d9ap+0f }, inverted[SMALL] = { 0x1.27515p+1f, 0x1.195d9ap+0f };

	vn_ggml_round(divided, NULL, VN_Q8_0, VN_GGML_DIVIDED, SMALL);
	vn_ggml_round(inverted, NULL, VN_Q8_0, VN_GGML_INVERTED, SMALL);
	CU_ASSERT_DOUBLE_EQUAL(divided[1] / divided[0] * 127.0f, 61.0, 1e-4);
	CU_ASSERT_DOUBLE_EQUAL(inverted[1] / inverted[0] * 127.0f, 60.0, 1e-4);
}

static void halves_are_rounded_and_floats_stay(void)
{
	float x[3] = { 1.0009765f, -0.33333334f, 70000.0f };

	vn_ggml_round(x, NULL, VN_F32, VN_GGML_DIVIDED, 3);
	CU_ASSERT_FALSE(vn_ggml_rounds(VN_F32));
	CU_ASSERT_EQUAL(x[1], -0.33333334f);
	vn_ggml_round(x, NULL, VN_F16, VN_GGML_DIVIDED, 2);
	CU_ASSERT_EQUAL(x[0], 1.0009765625f);
	CU_ASSERT_EQUAL(x[1], -0.333251953125f);
	vn_ggml_round(x, NULL, VN_BF16, VN_GGML_DIVIDED, 3);
	CU_ASSERT_EQUAL(x[0], 1.0f);
	CU_ASSERT_EQUAL(x[2], 70144.0f);
}

static void zeros_stay_zeros_and_a_row_of_no_whole_blocks_what_it_is(void)
{
	float zeros[LARGE] = { 0 }, odd[SMALL + 1];

	vn_ggml_round(zeros, NULL, VN_Q8_0, VN_GGML_DIVIDED, LARGE);
	vn_ggml_round(zeros, NULL, VN_Q4_K, VN_GGML_DIVIDED, LARGE);
	for (int i = 0; i < LARGE; i++)
		CU_ASSERT_EQUAL(zeros[i], 0.0f);
	for (int i = 0; i <= SMALL; i++)
		odd[i] = 1.0f / (float)(i + 3);
	vn_ggml_round(odd, NULL, VN_Q8_0, VN_GGML_DIVIDED, SMALL + 1);
	for (int i = 0; i <= SMALL; i++)
		CU_ASSERT_EQUAL(odd[i], 1.0f / (float)(i + 3));
}

static void gelu_is_what_the_table_of_halves_has(void)
{
	static const struct {
		float    x;
		uint16_t y;
	} row[] = {
		{ -9.5f, 0x8000 }, { -4.0f, 0x849a }, { -1.25f, 0xb03c }, { -0.3f, 0xaf56 },
		{ 0.1f, 0x2ae8 },  { 1.0f, 0x3abb },  { 2.5f, 0x40f8 },   { 9.0f, 0x4880 },
	};
	float ends[2] = { -12.3456f, 12.3456f };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		float y;
		vn_ggml_gelu(&y, &row[i].x, 1);
		CU_ASSERT_EQUAL(y, vn_f16_to_f32(row[i].y));
	}
	vn_ggml_gelu(ends, ends, 2);
	CU_ASSERT_EQUAL(ends[0], 0.0f);
	CU_ASSERT_EQUAL(ends[1], 12.3456f);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(blocks_of_32_are_those_of_ggml_to_the_bit),
		TEST(sums_of_blocks_are_rounded_as_ggml_rounds_them),
		TEST(blocks_of_256_are_those_of_ggml_to_the_bit),
		TEST(the_way_to_the_scale_is_seen_in_a_last_digit),
		TEST(halves_are_rounded_and_floats_stay),
		TEST(zeros_stay_zeros_and_a_row_of_no_whole_blocks_what_it_is),
		TEST(gelu_is_what_the_table_of_halves_has),
		CU_TEST_INFO_NULL,
	};
	return run_suite("ggml", tests);
}
