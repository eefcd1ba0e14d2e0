/* test_markup.c: untrusted text embedded in XML, HTML or Markdown (compare/text/markup.h). */
#include "compare/text/markup.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static char *said; /* by the last call, freed by the next */

static FILE *begin(size_t *n)
{
	free(said);
	said = NULL;
	return open_memstream(&said, n);
}

static const char *xml(const char *text)
{
	size_t n;
	FILE  *f = begin(&n);
	vn_xml_text(f, text);
	fclose(f);
	return said;
}

static const char *lines(void (*write)(FILE *, const char *), const char *text)
{
	size_t n;
	FILE  *f = begin(&n);
	write(f, text);
	fclose(f);
	return said;
}

static const char *code(const char *text, size_t most, int cell)
{
	size_t n;
	FILE  *f = begin(&n);
	vn_markdown_code(f, text, most, cell);
	fclose(f);
	return said;
}

static const char *sentence(const char *text, int cell)
{
	size_t n;
	FILE  *f = begin(&n);
	vn_markdown_text(f, text, cell);
	fclose(f);
	return said;
}

static void a_sentence_that_may_be_markup_is_code(void)
{
	CU_ASSERT_STRING_EQUAL(sentence("3 of 27 differ; \xc3\x97 floor (0.5 %)", 0),
	                       "3 of 27 differ; \xc3\x97 floor (0.5 %)");
	CU_ASSERT_STRING_EQUAL(sentence("<img src=x>", 0), "`<img src=x>`");
	CU_ASSERT_STRING_EQUAL(sentence("a|b", 1), "`a\\|b`");
	CU_ASSERT_STRING_EQUAL(sentence("@you, see https://a.b", 0), "`@you, see https://a.b`");
	CU_ASSERT_STRING_EQUAL(sentence("www.a.b", 0), "`www.a.b`");
	CU_ASSERT_STRING_EQUAL(code("a\\|b", 99, 1), "`a\\\\u{7c}b`"); /* not \\\\|, where the cell would end */
}

static void xml_has_five_characters_to_escape(void)
{
	CU_ASSERT_STRING_EQUAL(xml("a<b>&\"'c]]>"), "a&lt;b&gt;&amp;&quot;&#39;c]]&gt;");
	CU_ASSERT_STRING_EQUAL(xml("d\xc3\xa9j\xc3\xa0"), "d\xc3\xa9j\xc3\xa0");
	CU_ASSERT_STRING_EQUAL(xml(""), "");
}

static void what_xml_cannot_hold_is_made_readable(void)
{
	CU_ASSERT_STRING_EQUAL(xml("\x1b[2J\x01"), "\\u{1b}[2J\\u{1}");
	CU_ASSERT_STRING_EQUAL(xml("\xff\xc0\xaf\xed\xa0\x80"),
	                       "\\xff\\xc0\\xaf\\xed\\xa0\\x80"); /* overlong, a surrogate */
	CU_ASSERT_STRING_EQUAL(xml("\xef\xbf\xbe\xef\xbf\xbf"), "\\u{fffe}\\u{ffff}");
	CU_ASSERT_STRING_EQUAL(xml("two\nlines\r"), "two\\nlines\\r");
	CU_ASSERT_STRING_EQUAL(lines(vn_xml_lines, "two\n<lines>\r\n"), "two\n&lt;lines&gt;\\r\n");
}

static const char *csv(const char *text)
{
	size_t n;
	FILE  *f = begin(&n);
	vn_csv_text(f, text);
	fclose(f);
	return said;
}

static void a_cell_of_csv_holds_any_text_and_is_no_formula(void)
{
	CU_ASSERT_STRING_EQUAL(csv("layer3.q_rope"), "layer3.q_rope");
	CU_ASSERT_STRING_EQUAL(csv(""), "");
	CU_ASSERT_STRING_EQUAL(csv("a,b"), "\"a,b\"");
	CU_ASSERT_STRING_EQUAL(csv("say \"a\""), "\"say \"\"a\"\"\"");
	CU_ASSERT_STRING_EQUAL(csv("two\nlines"), "two\\nlines"); /* one row stays one line */
	CU_ASSERT_STRING_EQUAL(csv("=1+1"), "'=1+1");
	CU_ASSERT_STRING_EQUAL(csv("-x,y"), "\"'-x,y\"");
	CU_ASSERT_STRING_EQUAL(csv("-1.5e-7"), "-1.5e-7");
}

/* Every byte is plain text: no '<', no bare '&', no control character. */
static void no_byte_is_markup(void)
{
	for (int i = 1; i < 256; i++) {
		const char  one[] = { (char)i, 0 };
		const char *x = xml(one);
		CU_ASSERT_PTR_NULL(strpbrk(x, "<>\"'"));
		CU_ASSERT(*x != '&' || strchr(x, ';') != NULL);
		for (const char *c = x; *c; c++)
			CU_ASSERT((unsigned char)*c >= 0x20 && (unsigned char)*c < 0x7f);
	}
}

static void a_code_span_holds_any_run_of_backticks(void)
{
	CU_ASSERT_STRING_EQUAL(code("layer3.q_rope", 99, 0), "`layer3.q_rope`");
	CU_ASSERT_STRING_EQUAL(code("a`b``c", 99, 0), "```a`b``c```");
	CU_ASSERT_STRING_EQUAL(code("`", 99, 0), "`` ` ``");
	CU_ASSERT_STRING_EQUAL(code("", 99, 0), "`  `");
	CU_ASSERT_STRING_EQUAL(code("two\nlines", 99, 0), "`two\\nlines`");
	CU_ASSERT_STRING_EQUAL(code("a|b", 99, 0), "`a|b`");
	CU_ASSERT_STRING_EQUAL(code("a|b", 99, 1), "`a\\|b`");
}

static void a_long_span_is_cut_between_characters(void)
{
	CU_ASSERT_STRING_EQUAL(code("abcdef", 4, 0), "`abcd`");
	CU_ASSERT_STRING_EQUAL(code("abc\xc3\xa9"
	                            "f",
	                            4, 0),
	                       "`abc`");
	CU_ASSERT_STRING_EQUAL(code("abc\xc3\xa9"
	                            "f",
	                            5, 0),
	                       "`abc\xc3\xa9`");
}

static void a_page_marks_what_is_not_printable(void)
{
	CU_ASSERT_STRING_EQUAL(
		lines(vn_html_text, "a<\xe2\x80\xae"
	                        "b\n\xff"),
		"a&lt;<span class=\"unprintable\">\\u{202e}</span>b<span class=\"unprintable\">\\n</span><span "
		"class=\"unprintable\">\\xff</span>");
	CU_ASSERT_STRING_EQUAL(lines(vn_html_text, "C:\\users \\u{} \\u{1234567}"), "C:\\users \\u{} \\u{1234567}");
}

static void no_line_ends_a_fence(void)
{
	CU_ASSERT_STRING_EQUAL(lines(vn_markdown_fence, "one\n~~~~~~~~\n  ~~~~~~~~~  \nno \r~~~~~~~~\ntwo"),
	                       "~~~~~~~~text\none\nno \\r~~~~~~~~\ntwo\n~~~~~~~~\n");
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(xml_has_five_characters_to_escape),
		TEST(a_sentence_that_may_be_markup_is_code),
		TEST(a_cell_of_csv_holds_any_text_and_is_no_formula),
		TEST(what_xml_cannot_hold_is_made_readable),
		TEST(no_byte_is_markup),
		TEST(a_code_span_holds_any_run_of_backticks),
		TEST(a_long_span_is_cut_between_characters),
		TEST(a_page_marks_what_is_not_printable),
		TEST(no_line_ends_a_fence),
		CU_TEST_INFO_NULL,
	};
	const int failed = run_suite("markup", tests);
	free(said);
	return failed;
}
