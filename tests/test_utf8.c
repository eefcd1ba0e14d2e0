/* test_utf8.c: well-formed characters, and bytes as a terminal may see them. */
#include "libref/base/utf8.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>

static void characters_have_their_length_and_point(void)
{
	CU_ASSERT(vn_utf8_length("a", 1) == 1 && vn_utf8_point("a") == 'a');
	CU_ASSERT(vn_utf8_length("\0", 1) == 1 && vn_utf8_point("\0") == 0);
	CU_ASSERT(vn_utf8_length("\xc3\xa9", 2) == 2 && vn_utf8_point("\xc3\xa9") == 0xe9);
	CU_ASSERT(vn_utf8_length("\xe4\xb8\xad", 3) == 3 && vn_utf8_point("\xe4\xb8\xad") == 0x4e2d);
	CU_ASSERT(vn_utf8_length("\xf4\x8f\xbf\xbf", 4) == 4 && vn_utf8_point("\xf4\x8f\xbf\xbf") == 0x10ffff);
	CU_ASSERT(vn_utf8_length("\xed\x9f\xbf", 3) == 3 && vn_utf8_length("\xee\x80\x80", 3) == 3);
	CU_ASSERT(vn_utf8_length_before("a\xc3\xa9", 3) == 2 && vn_utf8_length_before("a\xc3\xa9", 1) == 1);
}

static void what_is_no_character_has_length_0(void)
{
	static const char *const bad[] = { "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xe4\xb8",
	                                   "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
	                                   "\xff", "\xf0\x9f\x98" };

	CU_ASSERT_EQUAL(vn_utf8_length("", 0), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CU_ASSERT_EQUAL(vn_utf8_length(bad[i], strlen(bad[i])), 0);
		CU_ASSERT_EQUAL(vn_utf8_good(bad[i], strlen(bad[i])), 0);
	}
	CU_ASSERT_EQUAL(vn_utf8_length_before("\xc3", 1), 0);
	CU_ASSERT_EQUAL(vn_utf8_length_before("", 0), 0);
}

static void good_and_bad_bytes_alternate(void)
{
	static const char text[] = "a\xc3\xa9\xff\xe4\xb8" "b\xf0\x9f";

	CU_ASSERT_EQUAL(vn_utf8_good(text, 9), 3);
	CU_ASSERT_EQUAL(vn_utf8_bad(text + 3, 6), 3);
	CU_ASSERT_EQUAL(vn_utf8_good(text + 6, 3), 1);
	CU_ASSERT_EQUAL(vn_utf8_bad(text + 7, 2), 2);
	CU_ASSERT_EQUAL(vn_utf8_bad("a", 1), 0);
}

static void cleaning_marks_each_stray_byte(void)
{
	char text[] = "x\xffy\xc3\xa9\xe4\xb8z\xed\xa0\x80";

	CU_ASSERT_PTR_EQUAL(vn_utf8_clean(text), text);
	CU_ASSERT_STRING_EQUAL(text, "x?y\xc3\xa9??z???");
}

static void escaped(const char *bytes, size_t n, const char *want)
{
	char *line = vn_utf8_escape(bytes, n);

	CU_ASSERT_STRING_EQUAL(line, want);
	CU_ASSERT_EQUAL(vn_utf8_unescape(line), n);
	CU_ASSERT(memcmp(line, bytes, n) == 0);
	free(line);
}

static void bytes_are_shown_and_come_back(void)
{
	escaped("", 0, "");
	escaped(" a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", 11, " a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80");
	escaped("a\n\r\t\\b", 6, "a\\n\\r\\t\\\\b");
	escaped("\0\x1b\x7f", 3, "\\u{0}\\u{1b}\\u{7f}");
	escaped("\xc2\x9b" "1m", 4, "\\u{9b}1m");                  /* a control of 8-bit terminals */
	escaped("\xe2\x80\xae\xe2\x80\xa8", 6, "\\u{202e}\\u{2028}"); /* right to left; a new line */
	escaped("\xf4\x8f\xbf\xbf\xee\x80\x80", 7, "\\u{10ffff}\\u{e000}");
	escaped("\xff\xe4\xb8z", 4, "\\xff\\xe4\\xb8z");
	escaped("\\x41", 4, "\\\\x41");
}

static void every_byte_comes_back(void)
{
	char all[512];

	for (int i = 0; i < 512; i++)
		all[i] = (char)(i < 256 ? i : 511 - i);
	char *line = vn_utf8_escape(all, sizeof all);
	CU_ASSERT_EQUAL(vn_utf8_good(line, strlen(line)), strlen(line));
	CU_ASSERT_EQUAL(vn_utf8_unescape(line), sizeof all);
	CU_ASSERT(memcmp(line, all, sizeof all) == 0);
	free(line);
}

static void what_is_no_escape_stays(void)
{
	static const char *const odd[] = { "\\", "\\q", "\\x", "\\x4", "\\xg1", "\\u", "\\u{", "\\u{}", "\\u{d800}", "\\u{110000}", "\\u{12", "\\x+1" };

	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		char text[16];
		strcpy(text, odd[i]);
		CU_ASSERT_EQUAL(vn_utf8_unescape(text), strlen(odd[i]));
		CU_ASSERT_STRING_EQUAL(text, odd[i]);
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(characters_have_their_length_and_point),
		TEST(what_is_no_character_has_length_0),
		TEST(good_and_bad_bytes_alternate),
		TEST(cleaning_marks_each_stray_byte),
		TEST(bytes_are_shown_and_come_back),
		TEST(every_byte_comes_back),
		TEST(what_is_no_escape_stays),
		CU_TEST_INFO_NULL,
	};
	return run_suite("utf8", tests);
}
