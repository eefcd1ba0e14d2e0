/* test_utf8.c: well-formed characters, and bytes as a terminal may see them. */
#include "libref/base/utf8.h"
#include "tests/support/suite.h"

#include <stdio.h>
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
	static const char *const bad[] = { "\x80",
		                               "\xbf",
		                               "\xc0\x80",
		                               "\xc1\xbf",
		                               "\xc3",
		                               "\xc3(",
		                               "\xe0\x9f\xbf",
		                               "\xe4\xb8",
		                               "\xed\xa0\x80",
		                               "\xed\xbf\xbf",
		                               "\xf0\x8f\xbf\xbf",
		                               "\xf4\x90\x80\x80",
		                               "\xf5\x80\x80\x80",
		                               "\xff",
		                               "\xf0\x9f\x98" };

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
	static const char text[] = "a\xc3\xa9\xff\xe4\xb8"
							   "b\xf0\x9f";

	CU_ASSERT_EQUAL(vn_utf8_good(text, 9), 3);
	CU_ASSERT_EQUAL(vn_utf8_bad(text + 3, 6), 3);
	CU_ASSERT_EQUAL(vn_utf8_good(text + 6, 3), 1);
	CU_ASSERT_EQUAL(vn_utf8_bad(text + 7, 2), 2);
	CU_ASSERT_EQUAL(vn_utf8_bad("a", 1), 0);
}

/* The ends of each class, and their neighbours outside it. */
static void what_is_printable_is_decided_by_class(void)
{
	/* clang-format off */
	static const struct { uint32_t first, last; bool printable; } range[] = {
		{ 0x0, 0x1f, false }, { 0x20, 0x7e, true }, { 0x7f, 0x9f, false }, { 0xa0, 0xa0, false }, { 0xa1, 0xac, true },
		  { 0xad, 0xad, false }, { 0xae, 0x2ff, true },
		{ 0x300, 0x34e, true }, { 0x34f, 0x34f, false }, { 0x391, 0x3a1, true }, { 0x3a2, 0x3a2, false },
		  /* unassigned */
		{ 0x5d0, 0x5ea, true }, { 0x61c, 0x61c, false }, { 0x620, 0x64a, true }, { 0x115f, 0x1160, false },
		  { 0x17b4, 0x17b5, false },
		{ 0x180b, 0x180f, false }, { 0x2000, 0x200f, false }, { 0x2010, 0x2027, true },
		{ 0x2028, 0x202f, false }, { 0x2030, 0x205e, true }, { 0x205f, 0x206f, false }, { 0x2070, 0x2071, true },
		{ 0x3000, 0x3000, false }, { 0x3041, 0x3096, true }, { 0x3164, 0x3164, false }, { 0x4e00, 0x9fff, true },
		  { 0xac00, 0xd7a3, true }, { 0xd800, 0xdfff, false },
		{ 0xe000, 0xf8ff, false }, { 0xfdd0, 0xfdef, false }, { 0xfe00, 0xfe0f, false }, { 0xfeff, 0xfeff, false },
		  { 0xff21, 0xff3a, true },
		{ 0xffa0, 0xffa0, false }, { 0xfff0, 0xfffb, false }, { 0xfffc, 0xfffd, true }, { 0xfffe, 0xffff, false },
		  { 0x1bca0, 0x1bca3, false },
		{ 0x1d173, 0x1d17a, false }, { 0x1f600, 0x1f64f, true }, { 0x1fffe, 0x1ffff, false },
		  { 0xe0000, 0xe0fff, false }, { 0xf0000, 0x10ffff, false },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof range / sizeof *range; i++)
		for (uint32_t p = range[i].first; p <= range[i].last; p++)
			if (vn_utf8_printable(p) != range[i].printable) {
				printf("U+%04X should %sbe printable\n", p, range[i].printable ? "" : "not ");
				CU_FAIL("printable");
				break;
			}
}

static void plain(const char *text, size_t n, size_t want)
{
	int marks = 0;
	CU_ASSERT_EQUAL(vn_utf8_plain(text, n, &marks), want);
}

static void printable_text_ends_at_what_is_not(void)
{
	plain("", 0, 0);
	plain("ab\n", 3, 2);
	plain("\xc3\xa9\xc2\x9b"
	      "31m",
	      7, 2);
	plain("a\xe2\x80", 3, 1); /* cut off */
	plain("a\xf0\x9f\x98", 4, 1);
	plain("a\xc0\xaf", 3, 1);         /* overlong */
	plain("a\xed\xa0\x80", 4, 1);     /* a surrogate */
	plain("a\xf4\x90\x80\x80", 5, 1); /* beyond the last */
	plain("a\xcc\x81\xcc\x81\xcc\x81\xcc\x81"
	      "b",
	      10, 10);
	plain("a\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81"
	      "b",
	      12, 9); /* the fifth mark */
}

static void each_code_names_its_character(void)
{
	static const struct {
		const char *text;
		size_t      n, used;
		const char *code;
	} one[] = {
		{ "\0", 1, 1, "\\u{0}" },          { "\n", 1, 1, "\\n" },
		{ "\xc2\x9b", 2, 2, "\\u{9b}" },   { "\xe2\x80\xae", 3, 3, "\\u{202e}" },
		{ "\xe2\x80", 2, 1, "\\xe2" },     { "\xf4\x8f\xbf\xbf", 4, 4, "\\u{10ffff}" },
		{ "\xed\xa0\x80", 3, 1, "\\xed" },
	};
	char code[VN_UTF8_CODE];

	for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
		CU_ASSERT_EQUAL(vn_utf8_code(one[i].text, one[i].n, code), one[i].used);
		CU_ASSERT_STRING_EQUAL(code, one[i].code);
	}
}

static void what_is_shown_twice_is_as_shown_once(void)
{
	static const char text[] = "\\ \\u{202e} \xe2\x80\xae\n\xff e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81";
	char             *once = vn_utf8_shown(text, sizeof text - 1), *twice = vn_utf8_shown(once, strlen(once));

	CU_ASSERT_STRING_EQUAL(once, "\\ \\u{202e} \\u{202e}\\n\\xff e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\\u{301}\\u{301}");
	CU_ASSERT_STRING_EQUAL(once, twice);
	free(once);
	free(twice);
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
	escaped("\xc2\x9b"
	        "1m",
	        4, "\\u{9b}1m");                                      /* a control of 8-bit terminals */
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
	static const char *const odd[] = { "\\",   "\\q",   "\\x",       "\\x4",        "\\xg1",  "\\u",
		                               "\\u{", "\\u{}", "\\u{d800}", "\\u{110000}", "\\u{12", "\\x+1" };

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
		TEST(what_is_printable_is_decided_by_class),
		TEST(printable_text_ends_at_what_is_not),
		TEST(each_code_names_its_character),
		TEST(what_is_shown_twice_is_as_shown_once),
		TEST(cleaning_marks_each_stray_byte),
		TEST(bytes_are_shown_and_come_back),
		TEST(every_byte_comes_back),
		TEST(what_is_no_escape_stays),
		CU_TEST_INFO_NULL,
	};
	return run_suite("utf8", tests);
}
