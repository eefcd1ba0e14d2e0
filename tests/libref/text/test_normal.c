/* test_normal.c: canonical composition as `tokenizers` does it. */
#include "libref/text/unicode.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static void becomes(const char *text, const char *want)
{
	const char *out;
	char       *owned;
	size_t      n;

	vn_nfc(text, strlen(text), &out, &n, &owned);
	CU_ASSERT(n == strlen(want) && memcmp(out, want, n) == 0);
	free(owned);
}

static void accents_are_composed(void)
{
	becomes("", "");
	becomes("plain", "plain");
	becomes("e\xcc\x81", "\xc3\xa9");
	becomes("xe\xcc\x81y\xcc\x81", "x\xc3\xa9\xc3\xbd");
	becomes("\xe2\x84\xab\xe2\x84\xa6", "\xc3\x85\xce\xa9");         /* U+212B, U+2126: singletons */
	becomes("\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c"); /* Hangul */
	becomes("a\xcc\x81\xcc\xa3", "\xe1\xba\xa1\xcc\x81");            /* the mark below goes first */
	becomes("\xef\xac\x81\xef\xbc\xa1", "\xef\xac\x81\xef\xbc\xa1"); /* ligature and wide letter stay */
	becomes("\xe0\xa4\x95\xe0\xa4\xbc\xe0\xa5\x98",
	        "\xe0\xa4\x95\xe0\xa4\xbc\xe0\xa4\x95\xe0\xa4\xbc");     /* excluded: decomposed for good */
	becomes("\xf0\x9d\x85\x9e", "\xf0\x9d\x85\x97\xf0\x9d\x85\xa5"); /* U+1D15E grows */
}

/* Marks and letters added since Unicode 10 are not moved, even if the library knows them. */
static void what_came_after_unicode_9_stays(void)
{
	becomes("a\xcc\x81\xe1\xb7\xb6", "\xc3\xa1\xe1\xb7\xb6");  /* U+1DF6 */
	becomes("a\xe1\xb7\xb9\xcc\x81", "a\xe1\xb7\xb9\xcc\x81"); /* U+1DF9, class 220 today, stays in front */
	becomes("\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0",
	        "\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0"); /* U+11935 U+11930, U+11938 since Unicode 13 */
	becomes("\xd8\xa7\xe0\xa3\x93\xd9\x8e\xd9\x91", "\xd8\xa7\xe0\xa3\x93\xd9\x8e\xd9\x91"); /* U+08D3 in Arabic */
	becomes("e\xcc\x81\xe1\xb7\xb6"
	        "e\xcc\x81",
	        "\xc3\xa9\xe1\xb7\xb6\xc3\xa9");
}

static void a_text_that_needs_nothing_is_not_copied(void)
{
	static const char text[] = "na\xc3\xafve caf\xc3\xa9";
	const char       *out;
	char             *owned;
	size_t            n;

	vn_nfc(text, sizeof text - 1, &out, &n, &owned);
	CU_ASSERT(out == text && n == sizeof text - 1 && !owned);
}

/* Sorting them by exchange would take minutes. */
static void a_long_run_of_marks_is_sorted_at_once(void)
{
	enum { N = 200000 };
	char       *text = malloc(4 * N + 1), *owned;
	const char *out;
	size_t      n;

	text[0] = 'a';
	for (int i = 0; i < N; i++)
		memcpy(text + 1 + 4 * i, "\xcc\x81\xcc\xa3", 4);
	vn_nfc(text, 4 * N + 1, &out, &n, &owned);
	CU_ASSERT(n == 4 * N + 1 && memcmp(out, "\xe1\xba\xa1\xcc\xa3\xcc\xa3", 7) == 0 &&
	          memcmp(out + n - 2, "\xcc\x81", 2) == 0);
	free(owned);
	free(text);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(accents_are_composed),
		TEST(what_came_after_unicode_9_stays),
		TEST(a_text_that_needs_nothing_is_not_copied),
		TEST(a_long_run_of_marks_is_sorted_at_once),
		CU_TEST_INFO_NULL,
	};
	return run_suite("normal", tests);
}
