/* test_printed.c: the bytes that a stream for people writes, and the bytes of JSON. */
#include "libref/base/json.h"
#include "libref/base/printed.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char raw[] = "a\xc3\xa9\xe2\x80\xae\tb\xc2\x9b"
						  "31m\n\x1b[31m\x1b[2J\xff\xe4\xb8z\xf0\x9f\x98\x80\xf0\x9f";
static const char plain[] =
	"a\xc3\xa9\\u{202e}\tb\\u{9b}31m\n\\u{1b}[31m\\u{1b}[2J\\xff\\xe4\\xb8z\xf0\x9f\x98\x80\\xf0\\x9f";
static const char coloured[] =
	"a\xc3\xa9\\u{202e}\tb\\u{9b}31m\n\x1b[31m\\u{1b}[2J\\xff\\xe4\\xb8z\xf0\x9f\x98\x80\\xf0\\x9f";

/* The stream's output for a text, written in pieces: the first of `first` bytes, others of n. */
static char *through_pieces(const char *text, size_t size, size_t first, size_t n, bool colour)
{
	static char got[4096];
	int         ends[2];
	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	FILE *f = vn_printed_open(ends[1], colour);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	setvbuf(f, NULL, _IONBF, 0);
	for (size_t at = 0, k = first; at < size; at += k, k = n)
		fwrite(text + at, 1, k < size - at ? k : size - at, f);
	CU_ASSERT_EQUAL(fclose(f), 0);
	const ssize_t k = read(ends[0], got, sizeof got - 1);
	got[k > 0 ? k : 0] = 0;
	close(ends[0]);
	return got;
}

static char *through(size_t n, bool colour)
{
	return through_pieces(raw, sizeof raw - 1, n, n, colour);
}

static void nothing_unprintable_comes_through_in_pieces_of_any_size(void)
{
	for (size_t n = 1; n < sizeof raw; n++) {
		CU_ASSERT_STRING_EQUAL(through(n, false), plain);
		CU_ASSERT_STRING_EQUAL(through(n, true), coloured);
	}
}

static void no_command_to_a_runner_comes_through_wherever_it_is_cut(void)
{
	static const char text[] = "##[add-mask] a###[ ##vso[task] ##v ##vso ##vs[ ##\xe4\xb8\xad[ # ##\n##vs"
							   "\n::add-mask::\n:root {\n\t: b ::c\n  ::x"
							   "\xf0\x9f\x98##vso[x \xf0\x9f\x98::::::";
	static const char want[] =
		"\\u{23}#[add-mask] a#\\u{23}#[ \\u{23}#vso[task] ##v ##vso ##vs[ ##\xe4\xb8\xad[ # ##\n##vs"
		"\n\\u{3a}:add-mask::\n:root {\n\t: b ::c\n  \\u{3a}:x"
		"\\xf0\\x9f\\x98\\u{23}#vso[x \\xf0\\x9f\\x98::::::";

	for (size_t n = 1; n < sizeof text; n++) {
		CU_ASSERT_STRING_EQUAL(through_pieces(text, sizeof text - 1, n, n, false), want);
		CU_ASSERT_STRING_EQUAL(through_pieces(text, sizeof text - 1, n, sizeof text, false), want);
	}
}

static void what_cannot_be_written_is_told(void)
{
	const int fd = open("/dev/full", O_WRONLY);
	FILE     *f = fd >= 0 ? vn_printed_open(fd, false) : NULL;
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("text", f);
	CU_ASSERT(fflush(f) != 0 && ferror(f));
	fclose(f);
}

static void json_comes_back_and_shows_nothing_unprintable(void)
{
	static const char text[] = "\x1b \x7f \xc2\x9b \xe2\x80\xae \xf3\xa0\x81\x81 \xe4\xb8\xad \xf0\x9f\x98\x80 \"\\ "
							   "e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81";
	char             *out = NULL;
	size_t            n = 0;
	json_t           *j = json_pack("{s:s, s:i}", "a\xe2\x80\xae", text, "b", 1);
	for (size_t flags = 0; flags < 3; flags++) {
		FILE *f = open_memstream(&out, &n);
		CU_ASSERT(vn_json_print(j, f, JSON_INDENT(flags)));
		fclose(f);
		if (flags == 0)
			CU_ASSERT_STRING_EQUAL(
				out, "{\"a\\u202e\": \"\\u001B \\u007f \\u009b \\u202e \\udb40\\udc41 \xe4\xb8\xad \xf0\x9f\x98\x80 "
					 "\\\"\\\\ e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\\u0301\", \"b\": 1}");
		json_t *back = json_loads(out, 0, NULL);
		CU_ASSERT(json_equal(back, j));
		json_decref(back);
		free(out);
		out = NULL;
	}
	CU_ASSERT_FALSE(vn_json_print(NULL, stdout, 0));
	json_decref(j);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(nothing_unprintable_comes_through_in_pieces_of_any_size),
		TEST(no_command_to_a_runner_comes_through_wherever_it_is_cut),
		TEST(what_cannot_be_written_is_told),
		TEST(json_comes_back_and_shows_nothing_unprintable),
		CU_TEST_INFO_NULL,
	};
	return run_suite("printed", tests);
}
