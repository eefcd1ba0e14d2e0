/* test_added.c: added tokens found in texts. */
#include "libref/text/added.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

enum { PLAIN, SINGLE, LEFT, RIGHT, BOTH };

static void add_token(vn_added *a, const char *text, int32_t id, int how)
{
	const vn_added_token t = { .id = id,
		                       .single_word = how == SINGLE,
		                       .lstrip = how == LEFT || how == BOTH,
		                       .rstrip = how == RIGHT || how == BOTH };
	CU_ASSERT_EQUAL(vn_added_put(a, &t, text, strlen(text), NULL), VN_OK);
}

/* Checks the found tokens, written as "id[from,to) ". */
static void finds(const vn_added *a, const char *text, const char *want)
{
	vn_added_search       s = { 0 };
	const vn_added_token *t;
	size_t                from, to;
	char                  have[256] = "";

	while ((t = vn_added_next(a, text, strlen(text), &s, &from, &to)))
		snprintf(have + strlen(have), sizeof have - strlen(have), "%d[%zu,%zu) ", t->id, from, to);
	CU_ASSERT_STRING_EQUAL(have, want);
	if (strcmp(have, want) != 0)
		fprintf(stderr, "'%s': '%s', not '%s'\n", text, have, want);
}

static void the_leftmost_and_of_those_the_longest(void)
{
	vn_added a = { 0 };

	add_token(&a, "aa", 1, PLAIN);
	add_token(&a, "aaa", 2, PLAIN);
	add_token(&a, "ba", 3, PLAIN);
	add_token(&a, "<|im", 4, PLAIN);
	add_token(&a, "<|im_end|>", 5, PLAIN);
	vn_added_settle(&a);
	finds(&a, "", "");
	finds(&a, "b a", "");
	finds(&a, "baaaaa", "3[0,2) 2[2,5) ");
	finds(&a, "aaaa", "2[0,3) ");
	finds(&a, "x<|im_end|<|im_end|>", "4[1,5) 5[10,20) ");
	finds(&a, "<|i", "");
	vn_added_finish(&a);
	finds(&a, "aa", "");
}

static void a_single_word_has_no_word_beside_it(void)
{
	vn_added a = { 0 };

	add_token(&a, "ab", 1, SINGLE);
	add_token(&a, "abc", 2, PLAIN);
	vn_added_settle(&a);
	finds(&a, "ab", "1[0,2) ");
	finds(&a, "ab xab abx abc ab", "1[0,2) 2[11,14) 1[15,17) ");
	finds(&a,
	      "\xc3\xa9"
	      "ab ab\xc3\xa9 _ab ab1 -ab- .ab",
	      "1[19,21) 1[24,26) ");
	finds(&a,
	      "ab\xcc\x81 \xe2\x80\x8d"
	      "ab",
	      ""); /* a mark, a joiner */
	finds(&a,
	      "\xff"
	      "ab\xe4\xb8",
	      "1[1,3) ");      /* stray bytes are no word */
	finds(&a, "abab", ""); /* each beside the other, and passed over */
	vn_added_finish(&a);
}

static void white_space_beside_it_is_taken_in(void)
{
	vn_added a = { 0 };

	add_token(&a, "<b>", 1, BOTH);
	add_token(&a, "<l>", 2, LEFT);
	add_token(&a, "<r>", 3, RIGHT);
	add_token(&a, " x", 4, PLAIN);
	add_token(&a, " \t", 5, BOTH);
	vn_added_settle(&a);
	finds(&a, "a  <b>  c", "1[1,8) ");
	finds(&a, "a \n\t<l> c", "2[1,7) ");
	finds(&a, "a <r>\xc2\xa0\xe3\x80\x80 c", "3[2,11) ");
	finds(&a, "<r>  <l>", "3[0,5) 2[5,8) ");         /* not twice */
	finds(&a, "<r> x", "3[0,4) 4[3,5) ");            /* as `tokenizers`: found where the raw text has it */
	finds(&a, "<r> \t  \ty \t.", "3[0,8) 5[9,11) "); /* also if the token is only white space */
	finds(&a, " \t  \t <l>", "5[0,6) 2[6,9) ");
	finds(&a, "\xe1\xa0\x8e<l>", "2[3,6) "); /* U+180E is no white space */
	finds(&a, "\xa0<l>\xa0", "2[1,4) ");     /* nor is a stray byte */
	vn_added_finish(&a);
}

static void of_the_same_text_the_first_stays(void)
{
	vn_added a = { 0 };

	for (int i = 0; i < 40; i++)
		add_token(&a, i % 2 ? "x" : "y", i, PLAIN);
	vn_added_settle(&a);
	CU_ASSERT_EQUAL(a.n, 2);
	finds(&a, "xy", "1[0,1) 0[1,2) ");
	vn_added_finish(&a);
}

static void bytes_of_any_value_may_begin_one(void)
{
	vn_added a = { 0 };

	add_token(&a, "\x01", 1, PLAIN);
	add_token(&a, "\xf4\x8f\xbf\xbf", 2, PLAIN);
	add_token(&a, "\x7f", 3, PLAIN);
	vn_added_settle(&a);
	finds(&a, "\xf4\x8f\xbf\xbf\x01\xf4\x8f\xbf\x7f\xff", "2[0,4) 1[4,5) 3[8,9) ");
	vn_added_finish(&a);
}

static void odd_ones_are_refused(void)
{
	static char    text[VN_LONGEST_ADDED + 1];
	vn_added       a = { 0 };
	vn_added_token t = { .id = 1 };
	vn_error       e = { "" };

	memset(text, 'x', sizeof text);
	CU_ASSERT_EQUAL(vn_added_put(&a, &t, "", 0, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_EQUAL(vn_added_put(&a, &t, "a\0b", 3, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_EQUAL(vn_added_put(&a, &t, text, sizeof text, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_STRING_EQUAL(e.text, "an added token has 1025 bytes; expected 1 to 1024 bytes, none of them zero");
	CU_ASSERT_EQUAL(vn_added_put(&a, &t, text, sizeof text - 1, &e), VN_OK);
	CU_ASSERT_EQUAL(a.n, 1);
	vn_added_finish(&a);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(the_leftmost_and_of_those_the_longest),
		TEST(a_single_word_has_no_word_beside_it),
		TEST(white_space_beside_it_is_taken_in),
		TEST(of_the_same_text_the_first_stays),
		TEST(bytes_of_any_value_may_begin_one),
		TEST(odd_ones_are_refused),
		CU_TEST_INFO_NULL,
	};
	return run_suite("added", tests);
}
