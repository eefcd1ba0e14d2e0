/* test_left_out.c: the lines of /run/left_out: written and read again, refused, looked up. */
#include "capture/recording/left_out.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST "00112233445566778899aabbccddeeff"
#define LINE(step, name, dtype, shape, digest, measured) \
	"{\"step\":" step ",\"name\":\"" name "\",\"dtype\":\"" dtype "\",\"shape\":" shape ",\"digest\":\"" digest \
	"\",\"reference\":\"" DIGEST "\",\"measured\":" measured "}"

static void a_line_is_read_as_it_was_written(void)
{
	vn_said_measure   m[] = { { "nmse", 0.1 }, { "scale", (double)NAN }, { "max_abs", -3e-300 } };
	const vn_left_out l = { .name = "layer3.q_rope",
		                    .step = 7,
		                    .dtype = VN_F16,
		                    .shape = { 3, { 17, 0, 64 } },
		                    .digest = { DIGEST },
		                    .reference = { "ffeeddccbbaa99887766554433221100" },
		                    .n = 3,
		                    .measure = m };
	vn_left_out       again;
	char             *line = vn_left_out_line(&l);

	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	CU_ASSERT_PTR_NULL(vn_left_out_read(line, &again));
	CU_ASSERT_STRING_EQUAL(again.name, l.name);
	CU_ASSERT_EQUAL(again.step, 7);
	CU_ASSERT_EQUAL(again.dtype, VN_F16);
	CU_ASSERT(vn_shape_equal(&again.shape, &l.shape));
	CU_ASSERT_STRING_EQUAL(again.digest.hex, l.digest.hex);
	CU_ASSERT_STRING_EQUAL(again.reference.hex, l.reference.hex);
	CU_ASSERT_EQUAL(again.n, 2); /* a NaN is none */
	CU_ASSERT_EQUAL(vn_left_out_measure(&again, "nmse"), 0.1);
	CU_ASSERT_EQUAL(vn_left_out_measure(&again, "max_abs"), -3e-300);
	CU_ASSERT(isnan(vn_left_out_measure(&again, "scale")));
	vn_left_out_finish(&again);
	free(line);
}

static void what_is_no_line_is_refused(void)
{
	static const char *const wrong[] = {
		"",
		"{}",
		"[]",
		"0",
		"{",
		LINE("-1", "a", "f32", "[1]", DIGEST, "{}"),
		LINE("2147483648", "a", "f32", "[1]", DIGEST, "{}"),
		LINE("\"0\"", "a", "f32", "[1]", DIGEST, "{}"),
		LINE("0", "", "f32", "[1]", DIGEST, "{}"),
		LINE("0", "a/b", "f32", "[1]", DIGEST, "{}"),
		LINE("0", "a\\u001b", "f32", "[1]", DIGEST, "{}"),
		LINE("0", "a", "f33", "[1]", DIGEST, "{}"),
		LINE("0", "a", "Q4_K", "[1]", DIGEST, "{}"),
		LINE("0", "a", "f32", "[1,1,1,1,1,1,1]", DIGEST, "{}"),
		LINE("0", "a", "f32", "[-1]", DIGEST, "{}"),
		LINE("0", "a", "f32", "[1.5]", DIGEST, "{}"),
		LINE("0", "a", "f32", "[4294967296,4294967296]", DIGEST, "{}"),
		LINE("0", "a", "f32", "[1]", "0011", "{}"),
		LINE("0", "a", "f32", "[1]", DIGEST, "[]"),
		LINE("0", "a", "f32", "[1]", DIGEST, "{\"nmse\":\"0\"}"),
		LINE("0", "a", "f32", "[1]", DIGEST, "{\"nmse\":1e999}"),
		LINE("0", "a", "f32", "[1]", DIGEST, "{\"nmse\":0,\"nmse\":1}"),
	};
	vn_left_out l;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CU_ASSERT_PTR_NOT_NULL(vn_left_out_read(wrong[i], &l));
	CU_ASSERT_PTR_NULL(vn_left_out_read(LINE("0", "a", "f32", "[1]", DIGEST, "{}"), &l));
	vn_left_out_finish(&l);
}

static void one_is_found_by_step_and_name(void)
{
	vn_left_out l[] = { { .name = "b", .step = 1 },
		                { .name = "c", .step = 0 },
		                { .name = "a", .step = 1 },
		                { .name = "a", .step = 10 },
		                { .name = "a", .step = 2 } };

	CU_ASSERT_PTR_NULL(vn_left_out_find(NULL, 0, 0, "a"));
	vn_left_out_sort(l, 5);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_PTR_EQUAL(vn_left_out_find(l, 5, l[i].step, l[i].name), &l[i]);
	CU_ASSERT_STRING_EQUAL(l[0].name, "c");
	CU_ASSERT_EQUAL(l[4].step, 10);
	CU_ASSERT_PTR_NULL(vn_left_out_find(l, 5, 0, "a"));
	CU_ASSERT_PTR_NULL(vn_left_out_find(l, 5, 1, "c"));
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_line_is_read_as_it_was_written),
		TEST(what_is_no_line_is_refused),
		TEST(one_is_found_by_step_and_name),
		CU_TEST_INFO_NULL,
	};
	return run_suite("left_out", tests);
}
