/* test_say.c: no string breaks a line, and everything else is as printf has it. */
#include "libref/base/say.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static char  *said;
static size_t n_said;
static FILE  *begin(void)
{
	free(said);
	said = NULL;
	return open_memstream(&said, &n_said);
}

/* Compares with the C library, for arguments that both print alike. */
#define SAME(...) \
	do { \
		char      want[256]; \
		FILE     *f = begin(); \
		const int n = vn_say(f, __VA_ARGS__); \
		fclose(f); \
		CU_ASSERT_EQUAL(n, snprintf(want, sizeof want, __VA_ARGS__)); \
		CU_ASSERT_STRING_EQUAL(said, want); \
	} while (0)

#define SAYS(want, ...) \
	do { \
		FILE *f = begin(); \
		vn_say(f, __VA_ARGS__); \
		fclose(f); \
		CU_ASSERT_STRING_EQUAL(said, want); \
	} while (0)

static void formats_are_those_of_printf(void)
{
	SAME("plain\n\ttext 100 %%, %d", 5);
	SAME("%s|%10s|%-10s|%.2s|%-*.*s|%*s|", "a", "b", "c", "def", 7, 2, "ghi", -6, "j");
	SAME("%d|%5d|%-5d|%05d|%+d|%.3d|% d", -1, 2, 3, 4, 5, 6, 7);
	SAME("%ld|%lld|%zu|%zd|%jd|%hd|%" PRId64 "|%" PRIu64, -1L, 1LL << 60, (size_t)-1, (ssize_t)-2, (intmax_t)9,
	     (short)-3, INT64_MIN, UINT64_MAX);
	SAME("%u|%x|%#x|%08X|%o|%lu|%llx", 4000000000u, 255u, 255u, 48879u, 8u, ~0ul, ~0ull);
	SAME("%g|%.3g|%+.3g|%11.4e|%-9.2f|%.*g|%a", 0.1, 1e9, -2.5, 1.0 / 3, 2.0 / 3, 17, 0.1, 1.5);
	SAME("%c|%3c|%-3c|", 'a', 'b', 'c');
}

static void no_string_breaks_a_line(void)
{
	SAYS("a\\nb\n", "%s\n", "a\nb");
	SAYS("[\\r\\tx\\u{1b}[2J\\u{2028}\\u{202e}\\xff]", "[%s]", "\r\tx\033[2J\u2028\u202e\xff");
	SAYS("  \\n|\\n  |", "%4s|%-4s|", "\n", "\n");
	SAYS("\\n|", "%c|", '\n');
	SAYS("a\\n|", "%.2s|", "a\nb");
	SAYS("a\\nb", "%s", "a\\nb");             /* once more changes nothing */
	SAYS("\u4e2d|", "%.5s|", "\u4e2d\u6587"); /* not inside a character */
}

static void only_our_colours_pass(void)
{
	SAYS("\033[31mred\033[0m", "%sred%s", vn_say_colour[VN_SAY_RED], vn_say_colour[VN_SAY_PLAIN]);
	SAYS("\\u{1b}[31m", "%s", "\033[31m");
}

/* A stream of which one write fails. */
typedef struct full {
	int  at, fails; /* the write that fails, from 0 */
	char text[64];
} full;

static ssize_t write_full(void *to, const char *text, size_t n)
{
	full *f = to;

	if (f->at++ == f->fails)
		return 0;
	strncat(f->text, text, n);
	return (ssize_t)n;
}

static void a_lost_part_ends_the_line(void)
{
	full  lost = { .fails = 3 };
	FILE *f = fopencookie(&lost, "w", (cookie_io_functions_t) { .write = write_full });

	setvbuf(f, NULL, _IONBF, 0);
	vn_say(f, "%s are outside: %s. Written.\n", "5", "a");
	fclose(f);
	CU_ASSERT_STRING_EQUAL(lost.text, "5 are outside: a"); /* and not the end of the sentence */
}

int main(void)
{
	static CU_TestInfo tests[] = { TEST(formats_are_those_of_printf), TEST(no_string_breaks_a_line),
		                           TEST(only_our_colours_pass), TEST(a_lost_part_ends_the_line), CU_TEST_INFO_NULL };
	const int          bad = run_suite("say", tests);
	free(said);
	return bad;
}
