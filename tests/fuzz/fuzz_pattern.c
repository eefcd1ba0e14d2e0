/* fuzz_pattern.c: any pattern of a pre-tokenizer on any text.
 *
 * Input: a byte whose lowest bit says that the pattern is literal, the pattern, a NUL, the text. A
 * pattern is refused with one line, or its pieces tile the text; a literal's pieces are the literal
 * and the text between. */
#include "libref/base/utf8.h"
#include "libref/text/split.h"
#include "tests/fuzz/mutate.h"

static void check_literal(const char *pattern, size_t n, const char *piece, size_t length)
{
	MUST((length == n && memcmp(piece, pattern, n) == 0) || !memmem(piece, length, pattern, n));
}

static void cut(const vn_split *s, bool literal, const char *pattern, size_t n, const char *text, size_t size)
{
	vn_split_work *w = vn_split_work_create(size);
	vn_error       e = { "" };

	if (!w)
		exit(2);
	for (size_t at = 0, end; at < size; at = end) {
		if (vn_split_next(s, w, (vn_split_text) { text, size }, at, &end, &e)) {
			MUST(fuzz_one_line(e.text));
			break;
		}
		MUST(end > at && end <= size && vn_utf8_good(text + at, end - at) == end - at); /* no character is cut */
		if (literal)
			check_literal(pattern, n, text + at, end - at);
	}
	vn_split_work_destroy(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	const bool   literal = data[0] & 1;
	const char  *pattern = (const char *)data + 1, *stop = memchr(pattern, 0, size - 1);
	const size_t n = stop ? (size_t)(stop - pattern) : size - 1;
	const char  *text = stop ? stop + 1 : "";
	const size_t most = stop ? size - n - 2 : 0, bytes = vn_utf8_good(text, most);
	vn_split    *s = NULL;
	vn_error     e = { "" };

	if (vn_utf8_good(pattern, n) != n)
		return 0;
	if (vn_split_create(pattern, n, literal, &s, &e)) {
		MUST(!s && fuzz_one_line(e.text));
		return 0;
	}
	cut(s, literal, pattern, n, text, bytes);
	vn_split_destroy(s);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static size_t make_seed(int i, uint8_t *out)
{
	static const struct {
		int         literal;
		const char *pattern, *text;
	} seeds[] = {
		{ 0,
		  "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}"
		  "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
		  "I'LL don't 1234\n\n x" },
		{ 0, "(?:a+)+b|(?<=x)y|(?=\\S)", "aaaaaaaaaaaaaaac xy" },
		{ 1, "ab", "xxabyyab" },
		{ 0, "\\p{Han}|[\\p{P}--[-]]", "\xe4\xb8\xad-\xe6\x96\x87" },
		{ 0, "[[:alpha:]&&[^a-c]]\\h\\R\\X", "abc" },
		{ 0, "\\A\\z|\\b.", "a b" },
	};
	*out = (uint8_t)(seeds[i].literal | 2);
	return 1 + (size_t)sprintf((char *)out + 1, "%s%c%s", seeds[i].pattern, 0, seeds[i].text);
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, 6, NULL, NULL };
	return fuzz_main(argc, argv, &plan);
}
#endif
