/* test_text.c: numbers as people write them, and text that is safe on a terminal. */
#include "libref/base/text.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static void whole_numbers_are_read(void)
{
	int64_t x = 0;

	CU_ASSERT(vn_text_whole("0", 0, 9, &x) && x == 0);
	CU_ASSERT(vn_text_whole("-3", -5, 5, &x) && x == -3);
	CU_ASSERT(vn_text_whole("1024", 1, 1024, &x) && x == 1024);
	CU_ASSERT(vn_text_whole("9223372036854775807", 0, INT64_MAX, &x) && x == INT64_MAX);
}

static void anything_else_is_refused_and_leaves_the_number(void)
{
	static const char *const bad[] = { "",
		                               "-",
		                               "+3",
		                               " 3",
		                               "3 ",
		                               "3x",
		                               "0x3",
		                               "--3",
		                               "1e2",
		                               "3.0",
		                               "1025",
		                               "0",
		                               "9223372036854775808",
		                               "99999999999999999999" };
	int64_t                  x = 7;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CU_ASSERT_FALSE(vn_text_whole(bad[i], 1, 1024, &x));
	CU_ASSERT_EQUAL(x, 7);
}

static void a_number_may_have_more_behind_it(void)
{
	static const char list[] = "-12,7";
	int64_t           x = 7;

	CU_ASSERT_PTR_EQUAL(vn_text_digits(list, &x), list + 3);
	CU_ASSERT_EQUAL(x, -12);
	CU_ASSERT_PTR_NULL(vn_text_digits(",7", &x));
	CU_ASSERT_PTR_NULL(vn_text_digits("99999999999999999999,1", &x));
	CU_ASSERT_EQUAL(x, -12);
}

static void decimal_numbers_are_read(void)
{
	static const char *const bad[] = { "",     "-",  ".",  "nan",  "inf",  "0x1p3", " 1", "1 ",
		                               "1.5x", "1e", "e1", "-0.1", "2.01", "1e999", "1,5" };
	double                   x = 0.5;

	CU_ASSERT(vn_text_real("0.7", 0, 2, &x) && x == 0.7);
	CU_ASSERT(vn_text_real("1e-3", 0, 2, &x) && x == 1e-3);
	CU_ASSERT(vn_text_real("2", 0, 2, &x) && x == 2.0);
	CU_ASSERT(vn_text_real(".25", 0, 2, &x) && x == 0.25);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CU_ASSERT_FALSE(vn_text_real(bad[i], 0, 2, &x));
	CU_ASSERT_EQUAL(x, 0.25);
}

static void what_is_not_printable_is_shown_by_its_code(void)
{
	char text[64] = "a\033[31mb\n\tc\x7f\xc3\xa9 d\xe2\x80\xae\xff";

	CU_ASSERT_PTR_EQUAL(vn_text_clean(text, sizeof text), text);
	CU_ASSERT_STRING_EQUAL(text, "a\\u{1b}[31mb\\n\\tc\\u{7f}\xc3\xa9 d\\u{202e}\\xff");
	vn_text_clean(text, sizeof text); /* twice is as once */
	CU_ASSERT_STRING_EQUAL(text, "a\\u{1b}[31mb\\n\\tc\\u{7f}\xc3\xa9 d\\u{202e}\\xff");
	CU_ASSERT(vn_text_control('\0') && !vn_text_control('\xff') && !vn_text_control(' '));
}

/* In buffers of every size: never writes past the end, never half an escape, and everything if
 * there is room. */
static void what_does_not_fit_is_cut_off(void)
{
	static const char text[] = "ab\ncd\xe2\x80\xae"
							   "ef\xff",
					  whole[] = "ab\\ncd\\u{202e}ef\\xff";
	char room[40];

	for (size_t n = sizeof text; n < sizeof room; n++) {
		memset(room, '#', sizeof room);
		memcpy(room, text, sizeof text);
		vn_text_clean(room, n);
		CU_ASSERT(strlen(room) < n);
		CU_ASSERT(strncmp(room, whole, strlen(room)) == 0);
		CU_ASSERT(strchr(room, '\\') == NULL || strlen(room) >= 4);
		CU_ASSERT(n < sizeof whole || strcmp(room, whole) == 0);
		for (size_t i = n; i < sizeof room; i++)
			CU_ASSERT_EQUAL(room[i], '#');
	}
}

static void words_are_found_and_listed(void)
{
	char text[12];

	CU_ASSERT(vn_text_is_word("f32|f16|bf16", "f16") && vn_text_is_word("f32", "f32"));
	CU_ASSERT_FALSE(vn_text_is_word("f32|bf16", "f16"));
	CU_ASSERT_FALSE(vn_text_is_word("f32|f16", "f32|f16"));
	CU_ASSERT_FALSE(vn_text_is_word("f32|f16", ""));
	CU_ASSERT_FALSE(vn_text_is_word(NULL, "f32"));
	CU_ASSERT_STRING_EQUAL(vn_text_words("a", text, sizeof text), "a");
	CU_ASSERT_STRING_EQUAL(vn_text_words("a|b", text, sizeof text), "a or b");
	CU_ASSERT_STRING_EQUAL(vn_text_words("a|b|c", text, sizeof text), "a, b or c");
	CU_ASSERT_STRING_EQUAL(vn_text_words("a|b|c|d", text, sizeof text), "a, b, c or ");
	CU_ASSERT_STRING_EQUAL(vn_text_words("", text, sizeof text), "");
}

static void numbers_are_written_as_people_do(void)
{
	static const struct {
		double      x;
		const char *text;
	} list[] = { { 1e-6, "1e-6" },
		         { 0.1, "0.1" },
		         { 500000, "500000" },
		         { 1e20, "1e20" },
		         { 0, "0" },
		         { -1e-5, "-1e-5" },
		         { 10000.5, "10000.5" },
		         { 1.0 / 3, "0.3333333333333333" },
		         { 2.5e-7, "2.5e-7" },
		         { 123456789, "123456789" },
		         { 1e100, "1e100" } };
	char text[32];

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		CU_ASSERT_STRING_EQUAL(vn_text_number(list[i].x, text), list[i].text);
		CU_ASSERT_EQUAL(strtod(text, NULL), list[i].x);
	}
}

static void names_are_in_the_order_of_their_numbers(void)
{
	static const char *const list[] = { "",   "0",    "01",  "1",     "a",      "a1", "a1b",
		                                "a2", "a02b", "a10", "a10b2", "a10b10", "b" };
	const int                n = sizeof list / sizeof *list;

	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++) {
			const int order = vn_text_order(list[i], list[k]);
			CU_ASSERT_EQUAL((order > 0) - (order < 0), (i > k) - (i < k));
		}
}

static void text_is_made_and_found(void)
{
	char long_word[3000];
	memset(long_word, 'x', sizeof long_word - 1);
	long_word[sizeof long_word - 1] = '\0';
	char *text = vn_text_new("%s-%d", long_word, 7);

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT(strlen(text) == 3001 && strcmp(text + 2999, "-7") == 0);
	free(text);
	const char *said = "An NVIDIA GPU";
	CU_ASSERT_PTR_EQUAL(vn_text_find(said, "nvidia"), said + 3);
	CU_ASSERT_PTR_EQUAL(vn_text_find(said, "gpu"), said + 10);
	CU_ASSERT_PTR_NULL(vn_text_find(said, "gpus"));
	CU_ASSERT_STRING_EQUAL(vn_text_file("a/b.yaml"), "b.yaml");
	CU_ASSERT_STRING_EQUAL(vn_text_file("b.yaml"), "b.yaml");
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(whole_numbers_are_read),
		TEST(anything_else_is_refused_and_leaves_the_number),
		TEST(a_number_may_have_more_behind_it),
		TEST(decimal_numbers_are_read),
		TEST(what_is_not_printable_is_shown_by_its_code),
		TEST(what_does_not_fit_is_cut_off),
		TEST(words_are_found_and_listed),
		TEST(numbers_are_written_as_people_do),
		TEST(names_are_in_the_order_of_their_numbers),
		TEST(text_is_made_and_found),
		CU_TEST_INFO_NULL,
	};
	return run_suite("text", tests);
}
