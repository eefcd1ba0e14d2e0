/* test_split.c: patterns in the words of PCRE2, and texts cut by them. */
#include "libref/text/split.h"

#include "libref/text/tokenizer_internal.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The pieces of a text with bars between. */
static void cuts(const char *pattern, const char *text, const char *want)
{
	vn_split      *s;
	vn_split_work *w = vn_split_work_create(strlen(text));
	vn_error       e = { "" };
	char           have[512] = "";

	CU_ASSERT_EQUAL_FATAL(vn_split_create(pattern, strlen(pattern), false, &s, &e), VN_OK);
	for (size_t at = 0, end; at < strlen(text); at = end) {
		CU_ASSERT_EQUAL_FATAL(vn_split_next(s, w, (vn_split_text) { text, strlen(text) }, at, &end, &e), VN_OK);
		CU_ASSERT_FATAL(end > at && end <= strlen(text));
		snprintf(have + strlen(have), sizeof have - strlen(have), "%s%.*s", at ? "|" : "", (int)(end - at), text + at);
	}
	CU_ASSERT_STRING_EQUAL(have, want);
	if (strcmp(have, want) != 0)
		fprintf(stderr, "'%s' by %s: '%s', not '%s'\n", text, pattern, have, want);
	vn_split_work_destroy(w);
	vn_split_destroy(s);
}

/* The patterns of specs/models.md, "Pre-tokenizer patterns". A NULL is as the one before. */
static void the_known_patterns_cut_as_the_table_says(void)
{
	static const char *const name[] = { "gpt-2", "qwen2", "qwen35", "llama-bpe" };
	static const struct {
		const char *text, *want[4];
	} row[] = {
		{ "I'LL don't we've", { "I|'|LL| don|'t| we|'ve", "I|'LL| don|'t| we|'ve" } },
		{ "abc123  def 4567",
		  { "abc|123| | def| 4567", "abc|1|2|3| | def| |4|5|6|7", NULL, "abc|123| | def| |456|7" } },
		{ "  lead  trail  ", { " | lead| | trail|  " } },
		{ "a\n\nb \n c\r\n", { "a|\n|\n|b| \n| c|\r\n", "a|\n\n|b| \n| c|\r\n" } },
		{ "price: $5.00!!\n\nok",
		  { "price|:| $|5|.|00|!!|\n|\n|ok", "price|:| $|5|.|0|0|!!\n\n|ok", NULL, "price|:| $|5|.|00|!!\n\n|ok" } },
		{ "foo_bar-baz", { "foo|_|bar|-|baz", "foo|_bar|-baz" } },
		{ "\t tab", { "\t| tab" } },
		{ "x\xcc\x81y", { "x|\xcc\x81|y", "x|\xcc\x81y", "x\xcc\x81y", "x|\xcc\x81y" } },
		{ "\xc2\xa0nbsp\xe3\x80\x80x", { "\xc2\xa0|nbsp|\xe3\x80\x80|x", "\xc2\xa0nbsp|\xe3\x80\x80x" } },
		/* Devanagari: h i n d(virama) d ii */
		{ "\xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xa6\xe0\xa5\x80",
		  { "\xe0\xa4\xb9|\xe0\xa4\xbf|\xe0\xa4\xa8|\xe0\xa5\x8d|\xe0\xa4\xa6|\xe0\xa5\x80",
		    "\xe0\xa4\xb9|\xe0\xa4\xbf\xe0\xa4\xa8|\xe0\xa5\x8d\xe0\xa4\xa6|\xe0\xa5\x80",
		    "\xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xa6\xe0\xa5\x80",
		    "\xe0\xa4\xb9|\xe0\xa4\xbf\xe0\xa4\xa8|\xe0\xa5\x8d\xe0\xa4\xa6|\xe0\xa5\x80" } },
		{ "it'\xc5\xbf", { "it|'|\xc5\xbf", "it|'\xc5\xbf" } }, /* a long s is an s in any case */
		{ "a \xe1\xa0\x8e"
		  "b",
		  { "a| \xe1\xa0\x8e|b" } }, /* U+180E is no white space */
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		for (int k = 0; k < 4; k++) {
			int j = k;
			while (!row[i].want[j])
				j--;
			cuts(vn_pre_find(name[k])->pattern, row[i].text, row[i].want[j]);
		}
	CU_ASSERT_PTR_NULL(vn_pre_find("gpt2"));
}

static void what_lies_between_matches_is_a_piece_too(void)
{
	cuts("[aeiou]+", "queue, xyz", "q|ueue|, xyz");
	cuts("a", "bbb", "bbb");
	cuts("x*", "axxb", "a|xx|b");
	cuts("(?=[A-Z])", "aBcD", "a|Bc|D");
	cuts("(?<=\\s)\\S", "ab cd", "ab |c|d");
	cuts("b|bc", "abcd", "a|b|cd"); /* ordered, not longest */
}

static void letters_later_than_the_library_are_letters(void)
{
	/* U+11F04 (Kawi, Unicode 15), U+105C0 (Todhri, 16), U+1611E (Gurung Khema, 16: a mark), U+10D40
	 * (Garay, 16: a digit) */
	cuts("\\p{L}+", "a\xf0\x91\xbc\x84\xf0\x90\x97\x80.", "a\xf0\x91\xbc\x84\xf0\x90\x97\x80|.");
	cuts("[\\p{L}\\p{M}]+", "a\xf0\x96\x84\x9e.", "a\xf0\x96\x84\x9e|.");
	cuts("[^\\p{N}]+", "a\xf0\x90\xb5\x80", "a|\xf0\x90\xb5\x80");
	cuts("\\P{N}+", "a\xf0\x90\xb5\x80", "a|\xf0\x90\xb5\x80");
}

static void a_text_may_stand_for_itself(void)
{
	vn_split      *s;
	vn_split_work *w = vn_split_work_create(100);
	size_t         end;

	CU_ASSERT_EQUAL_FATAL(vn_split_create("(.", 2, true, &s, NULL), VN_OK);
	CU_ASSERT(!vn_split_next(s, w, (vn_split_text) { "a(.b", 4 }, 0, &end, NULL) && end == 1);
	CU_ASSERT(!vn_split_next(s, w, (vn_split_text) { "a(.b", 4 }, 1, &end, NULL) && end == 3);
	CU_ASSERT(!vn_split_next(s, w, (vn_split_text) { "a(.b", 4 }, 3, &end, NULL) && end == 4);
	vn_split_work_destroy(w);
	vn_split_destroy(s);
}

static void what_could_mean_something_else_is_refused(void)
{
	/* clang-format off */
	static const struct { const char *pattern, *why; } bad[] = {
		{ "\\h", "an escape at byte 0 ('\\h') is not supported" },
		{ "a\\w+", "an escape at byte 1 ('\\w+') is not supported" },
		{ "\\b", "an escape" }, { "\\K", "an escape" }, { "\\G", "an escape" }, { "\\R", "an escape" },
		  { "\\v", "an escape" },
		{ "\\1", "an escape" }, { "a\\", "an escape" }, { "[\\w]", "an escape" }, { "\\Q", "an escape" },
		  { "\\E", "an escape" },
		{ "^a", "an anchor" }, { "a$", "an anchor" },
		{ "(?i)a", "a group" }, { "(?m:a)", "a group" }, { "(?<n>a)", "a group" }, { "(*ACCEPT)", "a group" },
		  { "(?", "a group" },
		{ "(?#x)", "a group" }, { "(?R)", "a group" },
		{ "[a&&b]", "a class of classes" }, { "[[:alpha:]]", "a class of classes" }, { "[]", "an empty class" },
		  { "[^]a]", "an empty class" },
		{ "[a", "a class without an end" }, { "[\\P{L}]", "a negated property inside a class" },
		  { "[\\p{^M}]", "a negated property" },
		{ "\\pL", "a property without braces" }, { "\\p{}", "a property" }, { "\\p{L", "a property" },
		  { "\\p{L&}", "a property" },
		{ "a{,3}", "a repetition" }, { "a{2}+", "a repetition" }, { "a{2}?", "a repetition" }, { "a{", "a repetition" },
		  { "a{x}", "a repetition" },
		{ "\\xff", "a code point" }, { "\\u12", "a code point" }, { "\\x{110000}", "a code point" },
		  { "\\x{", "a code point" },
		{ "", "the pattern has 0 bytes, expected 1 to " },
		{ "(a", "the pattern does not compile" }, { "a)", "the pattern does not compile" },
		  { "*", "the pattern does not compile" },
		{ "\\p{Nothing}", "the pattern does not compile: unknown property" },
		  { "[z-a]", "the pattern does not compile: range out of order" },
		{ "(?<=a*)b", "the pattern does not compile" }, { "a{99999}", "the pattern does not compile: number too big" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		vn_split *s;
		vn_error  e = { "" };
		CU_ASSERT_NOT_EQUAL(vn_split_create(bad[i].pattern, strlen(bad[i].pattern), false, &s, &e), VN_OK);
		CU_ASSERT_PTR_NULL(s);
		CU_ASSERT(strncmp(e.text, bad[i].why, strlen(bad[i].why)) == 0);
		if (strncmp(e.text, bad[i].why, strlen(bad[i].why)) != 0)
			fprintf(stderr, "%s: wanted '%s', have '%s'\n", bad[i].pattern, bad[i].why, e.text);
	}
}

static void what_both_mean_alike_is_kept(void)
{
	static const struct {
		const char *pattern, *want;
	} same[] = {
		{ "a|(b)?c*+d++e?+f{2,3}g{4}h{5,}.", "a|(b)?c*+d++e?+f{2,3}g{4}h{5,}." },
		{ "(?i:a)(?=b)(?!c)(?<=d)(?<!e)(?>f)(?-i:g)", "(?i:a)(?=b)(?!c)(?<=d)(?<!e)(?>f)(?-i:g)" },
		{ "\\s\\S[\\s\\-\\]]", "\\p{White_Space}\\P{White_Space}[\\p{White_Space}\\-\\]]" },
		{ "\\d\\p{Lu}\\P{Nd}\\p{^Zs}[\\P{Lu}]", "\\p{Nd}\\p{Lu}\\P{Nd}\\P{Zs}[\\P{Lu}]" },
		{ "\\p{Han}\\P{Greek}", "\\p{sc:Han}\\P{sc:Greek}" },
		{ "\\x41\\x{4e2d}\\u00e9\\n\\.", "\\x{41}\\x{4e2d}\\x{e9}\\n\\." },
		{ "\xe4\xb8\x80-]}", "\xe4\xb8\x80-]}" },
	};

	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		char *out;
		CU_ASSERT_EQUAL_FATAL(vn_pattern_translate(same[i].pattern, strlen(same[i].pattern), &out, NULL), VN_OK);
		CU_ASSERT_STRING_EQUAL(out, same[i].want);
		free(out);
	}
}

static vn_status cut_all(const char *pattern, const char *text, size_t n, vn_error *e)
{
	vn_split      *s;
	vn_split_work *w = vn_split_work_create(n);
	vn_status      st = vn_split_create(pattern, strlen(pattern), false, &s, e);

	for (size_t at = 0, end; !st && at < n; at = end)
		st = vn_split_next(s, w, (vn_split_text) { text, n }, at, &end, e);
	vn_split_work_destroy(w);
	vn_split_destroy(s);
	return st;
}

/* Without limits the first would outlast the universe. */
static void no_pattern_takes_for_ever(void)
{
	enum { N = 100000 };
	char    *text = malloc(N);
	vn_error e = { "" };

	memset(text, 'a', N);
	CU_ASSERT_EQUAL(cut_all("(a+)+\\d", text, N, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_STRING_EQUAL(e.text, "matching the pattern takes too many steps at byte 0 of the text");
	CU_ASSERT_EQUAL(cut_all("(?=(a*)*\\d)a", text, N, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_EQUAL(cut_all("(?:a?){99}(?:a?){99}(?:a?){99}\\d", text, N, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_EQUAL(cut_all("(?=a*\\d)b|a", text, N, &e),
	                VN_ERR_UNSUPPORTED); /* few steps, but n bytes from each place */
	/* Real patterns get the steps that they need for a long run. */
	memset(text, ' ', N);
	for (const char *const *name = (const char *const[]) { "gpt-2", "qwen2", "qwen35", "llama-bpe", NULL }; *name;
	     name++)
		CU_ASSERT_EQUAL(cut_all(vn_pre_find(*name)->pattern, text, N, &e), VN_OK);
	text[N - 1] = 'x';
	CU_ASSERT_EQUAL(cut_all(vn_pre_find("qwen2")->pattern, text, N, &e), VN_OK);
	free(text);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(the_known_patterns_cut_as_the_table_says),
		TEST(what_lies_between_matches_is_a_piece_too),
		TEST(letters_later_than_the_library_are_letters),
		TEST(a_text_may_stand_for_itself),
		TEST(what_could_mean_something_else_is_refused),
		TEST(what_both_mean_alike_is_kept),
		TEST(no_pattern_takes_for_ever),
		CU_TEST_INFO_NULL,
	};
	return run_suite("split", tests);
}
