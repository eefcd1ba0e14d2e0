/* test_glob.c: which names a pattern selects. */
#include "libref/base/glob.h"
#include "tests/support/suite.h"

#include <string.h>
#include <time.h>

static void a_pattern_matches_the_whole_name(void)
{
	CU_ASSERT_TRUE(vn_glob_match("logits", "logits"));
	CU_ASSERT_FALSE(vn_glob_match("logit", "logits"));
	CU_ASSERT_FALSE(vn_glob_match("ogits", "logits"));
	CU_ASSERT_FALSE(vn_glob_match("logitss", "logits"));
	CU_ASSERT_FALSE(vn_glob_match("Logits", "logits"));
}

static void a_star_is_any_run_even_an_empty_one(void)
{
	CU_ASSERT_TRUE(vn_glob_match("*", ""));
	CU_ASSERT_TRUE(vn_glob_match("*", "layer3.q_rope"));
	CU_ASSERT_TRUE(vn_glob_match("layer*.q_rope", "layer3.q_rope"));
	CU_ASSERT_TRUE(vn_glob_match("layer*.q_rope", "layer.q_rope"));
	CU_ASSERT_TRUE(vn_glob_match("*rope", "layer3.q_rope"));
	CU_ASSERT_TRUE(vn_glob_match("layer3*", "layer3"));
	CU_ASSERT_TRUE(vn_glob_match("layer1*", "layer17.input"));
	CU_ASSERT_TRUE(vn_glob_match("**a**", "xay"));
	CU_ASSERT_TRUE(vn_glob_match("*a*b", "aab ab"));
	CU_ASSERT_FALSE(vn_glob_match("layer*.q_rope", "layer3.k_rope"));
	CU_ASSERT_FALSE(vn_glob_match("*.q_rope", "layer3.q_rope "));
}

static void a_question_mark_is_exactly_one_character(void)
{
	CU_ASSERT_TRUE(vn_glob_match("layer?.input", "layer3.input"));
	CU_ASSERT_FALSE(vn_glob_match("layer?.input", "layer13.input"));
	CU_ASSERT_FALSE(vn_glob_match("layer?.input", "layer.input"));
	CU_ASSERT_FALSE(vn_glob_match("logits?", "logits"));
	CU_ASSERT_FALSE(vn_glob_match("?", ""));
}

static void braces_are_alternatives_and_may_nest(void)
{
	CU_ASSERT_TRUE(vn_glob_match("layer*.{q,k}_rope", "layer3.q_rope"));
	CU_ASSERT_TRUE(vn_glob_match("layer*.{q,k}_rope", "layer3.k_rope"));
	CU_ASSERT_FALSE(vn_glob_match("layer*.{q,k}_rope", "layer3.v_rope"));
	CU_ASSERT_TRUE(vn_glob_match("{a,b{c,d}}e", "ae"));
	CU_ASSERT_TRUE(vn_glob_match("{a,b{c,d}}e", "bde"));
	CU_ASSERT_FALSE(vn_glob_match("{a,b{c,d}}e", "be"));
	CU_ASSERT_TRUE(vn_glob_match("{{a,b},c}{d,e}", "be"));
	CU_ASSERT_TRUE(vn_glob_match("x{,y}", "x"));
	CU_ASSERT_TRUE(vn_glob_match("x{,y}", "xy"));
	CU_ASSERT_TRUE(vn_glob_match("{*,z}end", "the end"));
	CU_ASSERT_TRUE(vn_glob_match("{}", ""));
	CU_ASSERT_TRUE(vn_glob_match("{one}", "one"));
	CU_ASSERT_FALSE(vn_glob_match("{a,b}", ""));
	CU_ASSERT_TRUE(vn_glob_match("{,}{,}{a,}", "a"));
}

static void everything_else_stands_for_itself(void)
{
	CU_ASSERT_TRUE(vn_glob_match("a,b", "a,b"));
	CU_ASSERT_TRUE(vn_glob_match("[ab]", "[ab]"));
	CU_ASSERT_FALSE(vn_glob_match("[ab]", "a"));
	CU_ASSERT_TRUE(vn_glob_match("a\\*", "a\\b"));
	CU_ASSERT_TRUE(vn_glob_match("a.b", "a.b"));
	CU_ASSERT_FALSE(vn_glob_match("a.b", "axb"));
}

static void a_broken_pattern_is_refused_and_quoted(void)
{
	const char *broken[] = { "{", "}", "a{b", "a}b", "{a}}", "{{a}", "}{", "a}{b" };
	vn_error    e;

	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		e.text[0] = '\0';
		CU_ASSERT_EQUAL(vn_glob_check(broken[i], &e), VN_ERR_USAGE);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, broken[i]));
	}
	CU_ASSERT_EQUAL(vn_glob_check("", &e), VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "empty"));
}

static void a_good_pattern_passes_and_leaves_the_error_alone(void)
{
	vn_error e = { "untouched" };

	CU_ASSERT_EQUAL(vn_glob_check("layer*.{q,k}_rope", &e), VN_OK);
	CU_ASSERT_EQUAL(vn_glob_check("{{a,b},c}?", NULL), VN_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "untouched");
}

static void the_longest_pattern_passes_and_one_more_byte_does_not(void)
{
	char     p[VN_GLOB_MAX + 1];
	vn_error e;

	memset(p, 'a', sizeof p);
	p[VN_GLOB_MAX - 1] = '\0';
	CU_ASSERT_EQUAL(vn_glob_check(p, &e), VN_OK);
	CU_ASSERT_TRUE(vn_glob_match(p, p));
	p[VN_GLOB_MAX - 1] = 'a';
	p[VN_GLOB_MAX] = '\0';
	CU_ASSERT_EQUAL(vn_glob_check(p, &e), VN_ERR_USAGE);
	CU_ASSERT_FALSE(vn_glob_match(p, p));
}

/* Callers need not check a pattern first: a broken one must neither crash nor match everything. */
static void matching_a_broken_pattern_is_safe(void)
{
	CU_ASSERT_FALSE(vn_glob_match("{", "{"));
	CU_ASSERT_FALSE(vn_glob_match("a{b,c", "ab"));
	CU_ASSERT_FALSE(vn_glob_match("{{{{", "a"));
	CU_ASSERT_FALSE(vn_glob_match("", "a"));
	CU_ASSERT_TRUE(vn_glob_match("", ""));
}

static void a_hostile_pattern_ends_in_a_moment_without_a_match(void)
{
	char          name[129], stars[VN_GLOB_MAX], braces[VN_GLOB_MAX], mixed[VN_GLOB_MAX];
	const clock_t start = clock();

	memset(name, 'a', 128);
	name[128] = '\0';
	for (int i = 0; i < VN_GLOB_MAX - 1; i++) {
		stars[i] = "*a"[i % 2];
		braces[i] = "{a,a}"[i % 5];
		mixed[i] = "{*,a}"[i % 5];
	}
	stars[VN_GLOB_MAX - 2] = braces[VN_GLOB_MAX - 2] = mixed[VN_GLOB_MAX - 2] = 'b';
	stars[VN_GLOB_MAX - 1] = '\0';
	braces[250] = mixed[250] = 'b';
	braces[251] = mixed[251] = '\0';
	CU_ASSERT_FALSE(vn_glob_match(stars, name));
	CU_ASSERT_FALSE(vn_glob_match(braces, name));
	CU_ASSERT_FALSE(vn_glob_match(mixed, name));
	CU_ASSERT((double)(clock() - start) / CLOCKS_PER_SEC < 5.0);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_pattern_matches_the_whole_name),
		TEST(a_star_is_any_run_even_an_empty_one),
		TEST(a_question_mark_is_exactly_one_character),
		TEST(braces_are_alternatives_and_may_nest),
		TEST(everything_else_stands_for_itself),
		TEST(a_broken_pattern_is_refused_and_quoted),
		TEST(a_good_pattern_passes_and_leaves_the_error_alone),
		TEST(the_longest_pattern_passes_and_one_more_byte_does_not),
		TEST(matching_a_broken_pattern_is_safe),
		TEST(a_hostile_pattern_ends_in_a_moment_without_a_match),
		CU_TEST_INFO_NULL,
	};
	return run_suite("glob", tests);
}
